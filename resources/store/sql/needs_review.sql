-- Requests that only a person can bring further, those received first.
select request_id, workflow, batch_key, operation_id, initiator, reason, received_at
from requests_v
where closed_at is null and state = 'needs_review'
order by received_at, request_id
limit :limit
