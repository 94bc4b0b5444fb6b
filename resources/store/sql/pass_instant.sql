-- When this run's pass opened; a run that begins at a later step opens here.
insert into batch_runs (run_id, workflow, batch_key) values (:run_id, :workflow, :batch)
on conflict (run_id) do update set beat_at = clock_timestamp()
returning opened_at
