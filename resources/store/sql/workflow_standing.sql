-- Requests by workflow, batch and state, with the oldest of each.
select workflow, batch_key, state, requests, oldest from batch_counts
where cast(:workflow as text) is null or workflow = :workflow
order by workflow, batch_key, state
