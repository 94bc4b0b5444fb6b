-- Effects that only a person can settle.
select e.idempotency_key as key, e.action_type, r.operation_id
from effects e join requests r on r.id = e.request_id
where r.workflow = :workflow and e.state in ('unknown', 'late') and r.state not in ('executing', 'compensating')
