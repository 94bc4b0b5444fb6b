-- Of these batches, those that changed since their report (or have none), with how many of their requests are still open.
select b.workflow, b.batch_key, c.open
from unnest(cast(:workflows as text[]), cast(:batches as text[])) as wanted (workflow, batch_key)
join batches b on b.workflow = wanted.workflow and b.batch_key = wanted.batch_key
cross join lateral (
    select coalesce(sum(r.state_seq), 0) as seq, count(*) as requests,
        count(*) filter (where r.state = any (:open_states)) as open
    from requests r
    where r.workflow = b.workflow and r.batch_key = b.batch_key
) c
where c.requests > 0 and (b.reported_at is null or c.seq <> b.reported_seq)
