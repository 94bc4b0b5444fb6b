-- The effects of a schedule that were ever begun.
select e.idempotency_key as key, e.kind, e.state, e.attempts, e.action_type, e.provider_reference as reference
from effects e join requests r on r.id = e.request_id
where r.workflow = :workflow
