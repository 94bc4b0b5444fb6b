-- The time of every approval ends within so many seconds, each at a moment of its own.
update approval_requests a set expires_at = clock_timestamp() + make_interval(secs => :seconds * random())
from requests r
where r.approval_id = a.id and r.workflow = :workflow
