"""Where the commands find the workflow of a test: the test puts its own here as `workflow`."""
