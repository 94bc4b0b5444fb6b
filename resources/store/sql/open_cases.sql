-- Open dead letters of a batch: while there is one, the batch is red.
select count(*) from dead_letters d join requests r on r.id = d.request_id
where d.closed_at is null and r.workflow = :workflow and r.batch_key = :batch
