-- Proposals of this round that nobody validated yet.
-- OFFSET 0 keeps each look-up a look-up: joined freely, the planner may read the whole batch for every page of it.
select r.id, r.workflow_version, r.revision, r.round,
    case when r.supplied then supplied_payload(r.id) else r.payload end as payload,
    case when r.supplied then supplied_by_another(r.id, r.initiator) else false end as supplied_by_another,
    p.canonical, p.edited, who.roles, who.disabled_at is not null as disabled
from requests r
cross join lateral (
    select x.canonical, x.edited_by is not null as edited from proposals x where x.request_id = r.id and x.revision = r.revision offset 0
) p
cross join lateral (select x.roles, x.disabled_at from principals x where x.id = r.initiator offset 0) who
where r.workflow = :workflow and r.batch_key = :batch and r.state = 'proposal_ready' and r.id > :after
  and r.closed_at is null and r.lease_token is null and r.next_eligible_at <= :opened_at
  and not exists (
    select from findings f where f.request_id = r.id and f.revision = r.revision and f.round = r.round offset 0)
order by r.id
limit :limit
