-- One row a request of a batch: how it was last judged, how it ended and after how long, how many effects it had.
select coalesce(j.tier, 'none') as tier, j.decision, r.state,
    cast(extract(epoch from r.closed_at - r.received_at) as float8) as latency_seconds,
    (select count(*) from effects e where e.request_id = r.id and e.kind = 'forward' and e.state in ('done', 'late')) as effects
from requests r
left join lateral (
    select a.tier, a.decision from assessments a where a.request_id = r.id order by a.revision desc, a.round desc limit 1
) j on true
where r.workflow = :workflow and r.batch_key = :batch
