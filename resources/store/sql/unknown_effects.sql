-- Unknown effects of the claimed requests, and how long ago each was first sent and last started, by the database clock.
select e.request_id, e.idempotency_key, e.ordinal, e.action_type,
    clock_timestamp() - e.first_sent_at as since_first, clock_timestamp() - e.started_at as since_last
from effects e join requests r on r.id = e.request_id
where r.id = any (cast(:ids as uuid[])) and r.lease_token = :token and e.state = 'unknown'
  -- What it is about now: its actions, or their undos, of the try that stands. undo_late asks for the undo of what came late.
  and e.kind = case r.state when 'compensating' then 'compensation' else 'forward' end
  and e.intent = (select max(f.intent) from effects f where f.request_id = e.request_id and f.ordinal = e.ordinal and f.kind = 'forward')
order by e.request_id, e.ordinal
