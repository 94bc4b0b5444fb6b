-- Effects of a batch of which nobody has known for long what became, by provider and by what would find it out.
select e.provider, case when r.state in ('executing', 'compensating') and not exists (
        select from effects f where e.kind = 'compensation' and f.request_id = e.request_id and f.ordinal = e.ordinal
            and f.intent = e.intent and f.kind = 'forward' and f.state = 'late' and f.undo_due_at is null)
        then 'look-up' else 'person' end as waits_for,
    count(*) as effects, cast(extract(epoch from max(clock_timestamp() - e.started_at)) as float8) as oldest_seconds,
    (array_agg(e.idempotency_key order by e.started_at, e.idempotency_key))[1:cast(:names as integer)] as oldest
from effects e join requests r on r.id = e.request_id
where r.workflow = :workflow and r.batch_key = :batch and e.state = 'unknown'
  and e.started_at <= clock_timestamp() - cast(:unknown_for as interval)
group by 1, 2
order by oldest_seconds desc, 1, 2
