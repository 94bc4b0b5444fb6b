-- How one request stands, and who submitted it.
select id as request_id, workflow, operation_id, state, reason, batch_key, received_at, closed_at, initiator
from requests where id = :request_id
