-- Batches with work that is due, and why; least recently opened first, so that none waits behind one that is opened often.
-- `fresh`: the reasons for which something became due after the batch was last opened. `resting`: its last runs found
-- nothing to do, nothing is fresh, and its wait (doubled by each idle run) is not over.
select workflow, batch_key, reasons, fresh,
    idle_runs > 0 and cardinality(fresh) = 0 and clock_timestamp() < last_opened_at + least(
        cast(:longest_rest as interval), cast(:rest as interval) * power(2, least(idle_runs, 20) - 1)) as resting
from (
    select d.workflow, d.batch_key, array_agg(d.reason) as reasons,
        coalesce(array_agg(d.reason) filter (where b.last_opened_at is null or d.last_due_since > b.last_opened_at), '{}') as fresh,
        min(d.due_since) as due_since, max(b.last_opened_at) as last_opened_at, coalesce(max(b.idle_runs), 0) as idle_runs
    from due_batches d
    left join batches b on b.workflow = d.workflow and b.batch_key = d.batch_key
    where d.workflow = any (:workflows) and d.reason = any (:reasons)
    group by d.workflow, d.batch_key
) due
order by last_opened_at nulls first, due_since, workflow, batch_key
