-- A pass begins: its heartbeat starts anew, and the instant returned bounds what it advances.
with opened as (
    insert into batches (workflow, batch_key, last_opened_at) values (:workflow, :batch, clock_timestamp())
    on conflict (workflow, batch_key) do update set last_opened_at = clock_timestamp()
)
insert into batch_runs (run_id, workflow, batch_key) values (:run_id, :workflow, :batch)
on conflict (run_id) do update set opened_at = clock_timestamp(), beat_at = clock_timestamp(), closed_at = null
returning opened_at
