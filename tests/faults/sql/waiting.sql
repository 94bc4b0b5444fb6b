-- What reviewers are asked now.
select r.operation_id, a.id, a.proposal_hash, a.review_hash
from requests r join approval_requests a on a.id = r.approval_id
where r.workflow = :workflow and r.state = 'awaiting_approval'
order by r.id
