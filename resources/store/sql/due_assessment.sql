-- Validated proposals of this round that nobody assessed yet, locked: claims and assessment are written in one transaction.
-- OFFSET 0 keeps each look-up a look-up: joined freely, the planner may read the whole batch for every page of it.
select r.id, r.workflow_version, r.revision, r.round, r.attempts,
    case when r.supplied then supplied_payload(r.id) else r.payload end as payload,
    case when r.supplied then supplied_by_another(r.id, r.initiator) else false end as supplied_by_another,
    p.canonical, p.edited, f.verdict, f.items, f.weakest_trust, f.parties,
    f.created_at > clock_timestamp() - interval '20 seconds' as fresh
from requests r
cross join lateral (
    select x.canonical, x.edited_by is not null as edited from proposals x where x.request_id = r.id and x.revision = r.revision offset 0
) p
cross join lateral (
    select x.verdict, x.items, x.weakest_trust, x.parties, x.created_at from findings x
    where x.request_id = r.id and x.revision = r.revision and x.round = r.round offset 0
) f
where r.workflow = :workflow and r.batch_key = :batch and r.state = 'proposal_ready' and r.id > :after
  and r.closed_at is null and r.lease_token is null and r.next_eligible_at <= :opened_at
  and not exists (
    select from assessments a where a.request_id = r.id and a.revision = r.revision and a.round = r.round offset 0)
order by r.id
limit :limit
for update of r skip locked
