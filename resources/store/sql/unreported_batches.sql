-- Batches whose report may be out of date: never made, or made while something in them could still change.
select workflow, batch_key, clock_timestamp() as now
from batches
where workflow = any (:workflows) and (reported_at is null or reported_unfinished > 0)
order by reported_at nulls first, workflow, batch_key
