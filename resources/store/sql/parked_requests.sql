-- What stands still and why, parked first, then waiting longest.
select r.operation_id, r.state, coalesce(r.reason, case r.state when 'awaiting_approval' then 'waits for a reviewer' else '' end) as reason,
    r.id::text as request_id
from requests r
where r.workflow = :workflow and r.batch_key = :batch and r.closed_at is null
  and r.state in ('needs_review', 'dead_lettered', 'compensation_failed', 'awaiting_approval')
order by r.state = 'awaiting_approval', r.received_at, r.id
limit :limit
