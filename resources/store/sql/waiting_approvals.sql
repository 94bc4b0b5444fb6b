-- What waits for a vote now, soonest expiry first.
select approval_id, request_id, workflow, batch_key, operation_id, tier, roles, votes_for, quorum, opened_at, expires_at
from approvals_v
where outcome = 'open' and expires_at > clock_timestamp()
  and (cast(:workflow as text) is null or workflow = :workflow) and (cast(:tier as text) is null or tier = :tier)
order by expires_at, approval_id
