-- Open approval requests of a batch: how many, the age of the oldest, and how many have used up half of their time.
select count(*) as open,
    count(*) filter (where clock_timestamp() > a.opened_at + (a.expires_at - a.opened_at) / 2) as late,
    coalesce(cast(extract(epoch from max(clock_timestamp() - a.opened_at)) as float8), 0) as oldest_seconds
from requests r
join approval_requests a on a.id = r.approval_id
where r.workflow = :workflow and r.batch_key = :batch and r.closed_at is null and r.state = 'awaiting_approval'
