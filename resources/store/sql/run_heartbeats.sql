-- Seconds since each of these runs was last heard of; one that never opened its batch has no row.
select run_id, cast(extract(epoch from clock_timestamp() - beat_at) as float8) as silent_seconds
from batch_runs
where run_id = any (:run_ids)
