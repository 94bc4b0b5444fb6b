-- The batch's assets were made from what stood when that began; a batch that nobody wrote to has nothing to remember.
update batches
set reported_at = clock_timestamp(), reported_seq = :seq, reported_unfinished = :unfinished
where workflow = :workflow and batch_key = :batch
