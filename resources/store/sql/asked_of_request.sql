-- The latest approval request of a request, or the one named, with the review document as it is shown.
select a.id as approval_id, a.request_id, v.workflow, v.operation_id, a.tier, a.roles, v.votes_for, a.quorum, a.opened_at,
    a.expires_at, v.outcome, a.proposal_hash, a.review_hash, a.review_document,
    (select r.state from requests_v r where r.request_id = a.request_id) as request_state
from approval_requests a
join approvals_v v on v.approval_id = a.id
where a.request_id = :request_id and (cast(:approval_id as uuid) is null or a.id = :approval_id)
order by a.opened_at desc
limit 1
