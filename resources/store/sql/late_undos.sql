-- The late effects of the claimed request whose undo is due, and how far that is.
select e.request_id, e.ordinal, e.intent, e.idempotency_key as key, e.recovery, e.provider_reference as reference, u.state as undo_state,
    u.idempotency_key as undo_key, e.undo_attempts as attempts,
    clock_timestamp() - e.undo_asked_at as since_asked,
    clock_timestamp() - u.first_sent_at as since_first, clock_timestamp() - u.started_at as since_last
from effects e
join requests r on r.id = e.request_id and r.lease_token = :token
left join effects u on u.request_id = e.request_id and u.ordinal = e.ordinal and u.intent = e.intent and u.kind = 'compensation'
where e.request_id = :request_id and e.state = 'late' and e.undo_due_at <= clock_timestamp()
order by e.ordinal desc, e.intent desc
