-- The requests a person may mean by one name: their own id, the id of an approval request, or the caller's operation_id.
select r.request_id, r.workflow, r.operation_id, r.state, r.reason
from requests_v r
where r.request_id in (
    select q.request_id from requests_v q where q.request_id = cast(:id as uuid) or q.operation_id = :name
    union
    select a.request_id from approvals_v a where a.approval_id = cast(:id as uuid))
order by r.request_id
limit 10
