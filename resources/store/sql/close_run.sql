-- A run is over; idle ones are counted, because a batch whose runs find nothing is looked at less often.
with run as (
    update batch_runs set closed_at = clock_timestamp(), beat_at = clock_timestamp() where run_id = :run_id returning moved
)
update batches set idle_runs = case when (select moved from run) = 0 then idle_runs + 1 else 0 end
where workflow = :workflow and batch_key = :batch
