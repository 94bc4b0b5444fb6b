-- What somebody who may decide on an approval request needs to make another proposal of it.
select request_id, workflow, workflow_version, revision, canonical, payload, roles from proposal_to_edit(:session, :approval)
