-- Every round in which people were asked about a request, the latest first, with the votes of each.
select v.approval_id, v.revision, v.round, v.tier, v.roles, v.quorum, v.opened_at, v.expires_at, v.outcome, v.resolved_at,
    v.consumed_at, v.proposal_hash, v.review_hash,
    coalesce((select json_agg(json_build_object('voter_id', c.voter, 'voter', p.name, 'vote', c.vote, 'reason', c.reason,
        'cast_at', c.cast_at, 'proposal_hash', encode(c.proposal_hash, 'hex'), 'review_hash', encode(c.review_hash, 'hex'))
        order by c.cast_at)
        from approval_votes c join principals p on p.id = c.voter where c.approval_id = v.approval_id), '[]') as votes
from approvals_v v
where v.request_id = :request_id
order by v.opened_at desc
