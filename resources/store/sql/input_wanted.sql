-- What somebody who may add to a request that needs review needs to do so.
select workflow, workflow_version, operation_id, revision, payload from input_wanted(:session, :request_id)
