-- Effects that were started although the store holds nothing that allowed it: neither an automatic decision in live mode
-- nor a consumed release of this proposal by enough votes; for an undo, the effect that it undoes.
select e.idempotency_key
from effects e
join requests r on r.id = e.request_id
where r.workflow = :workflow and r.batch_key = :batch
  and not case e.kind
    when 'compensation' then exists (
        select from effects f where f.request_id = e.request_id and f.action_id = e.action_id and f.kind = 'forward')
    else exists (
        select from assessments j
        where j.request_id = e.request_id and j.revision = e.revision and j.round = e.round and j.mode = 'live' and j.decision = 'auto')
      or exists (
        select from approval_requests q
        join approval_resolutions s on s.approval_id = q.id and s.outcome = 'released' and s.consumed_at is not null
        where q.request_id = e.request_id and q.revision = e.revision and q.round = e.round and q.proposal_hash = e.proposal_hash
          and not exists (select from approval_votes v where v.approval_id = q.id and v.vote = 'deny')
          and q.quorum <= (
            select count(*) from approval_votes v
            where v.approval_id = q.id and v.vote = 'approve' and v.proposal_hash = q.proposal_hash and v.review_hash = q.review_hash))
    end
order by e.idempotency_key
limit :limit
