-- What waits for a vote and the holder of this session may see, soonest expiry first; no document too large for a list.
select v.approval_id, v.request_id, v.workflow, v.operation_id, v.tier, v.votes_for, v.quorum, v.opened_at, v.expires_at,
    vote_obstacle(:session, v.approval_id) as obstacle,
    case when octet_length(a.review_document) <= :longest then a.review_document end as document
from approvals_v v join approval_requests a on a.id = v.approval_id
where v.outcome = 'open' and v.expires_at > clock_timestamp() and may_see(:session, v.request_id)
  and (cast(:workflow as text) is null or v.workflow = :workflow) and (cast(:tier as text) is null or v.tier = :tier)
  and v.opened_at <= clock_timestamp() - cast(:age as interval)
order by v.expires_at, v.approval_id
limit :limit
