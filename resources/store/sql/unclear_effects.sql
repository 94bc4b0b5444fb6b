-- Effects that are unknown, or late with a case that is still open: it is not known, or not as settled, what became of them.
select e.idempotency_key, e.request_id, r.workflow, r.operation_id, e.action_type, e.provider, e.state,
    case when e.state = 'unknown' and r.state in ('executing', 'compensating') and not exists (
            select from effects f where e.kind = 'compensation' and f.request_id = e.request_id and f.ordinal = e.ordinal
                and f.intent = e.intent and f.kind = 'forward' and f.state = 'late' and f.undo_due_at is null) -- given up
            then 'look-up'
        when e.state = 'late' and e.undo_due_at is not null then 'undo' else 'person' end as waits_for,
    e.first_sent_at, e.outcome_at, e.provider_reference, e.error, e.attempts, parameters_of(e) as parameters
from effects e
join requests r on r.id = e.request_id
where (e.state = 'unknown' or e.state = 'late' and exists (
    select from dead_letters d where d.request_id = e.request_id and d.closed_at is null))
  and (cast(:workflow as text) is null or r.workflow = :workflow)
order by e.first_sent_at, e.idempotency_key
