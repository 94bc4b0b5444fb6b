"""Pure decisions: no I/O, no clock, no randomness. Time and facts are arguments, durations are results."""
