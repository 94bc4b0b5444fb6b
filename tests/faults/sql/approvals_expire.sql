-- The time of every unanswered approval is over.
update approval_requests a set opened_at = a.opened_at - interval '9 d', expires_at = a.opened_at - interval '8 d'
from requests r
where r.approval_id = a.id and r.workflow = :workflow and r.state = 'awaiting_approval'
