-- Requests that wait for people but whom nobody has asked yet in this round.
-- OFFSET 0 keeps each look-up a look-up: joined freely, the planner may read the whole batch for every page of it.
select r.id, r.workflow_version, r.revision, r.round,
    case when r.supplied then supplied_payload(r.id) else r.payload end as payload,
    case when r.supplied then supplied_by_another(r.id, r.initiator) else false end as supplied_by_another,
    r.initiator, r.subject, r.operation_id, who.name as initiator_name,
    who.external_id as initiator_external_id, r.received_at, p.canonical, p.edited, f.verdict, f.items, f.weakest_trust, f.parties, a.tier, a.reasons, a.demand, a.policy_version,
    array(select x.name from proposals e join principals x on x.id = e.edited_by where e.request_id = r.id order by e.revision) as editors,
    case when r.supplied then array(
        select x.name from request_inputs i join principals x on x.id = i.supplied_by where i.request_id = r.id order by i.revision)
        else '{}' end as suppliers
from requests r
cross join lateral (select x.name, x.external_id from principals x where x.id = r.initiator offset 0) who
cross join lateral (
    select x.canonical, x.edited_by is not null as edited from proposals x where x.request_id = r.id and x.revision = r.revision offset 0
) p
cross join lateral (
    select x.verdict, x.items, x.weakest_trust, x.parties from findings x
    where x.request_id = r.id and x.revision = r.revision and x.round = r.round offset 0
) f
cross join lateral (
    select x.tier, x.reasons, x.demand, x.policy_version from assessments x
    where x.request_id = r.id and x.revision = r.revision and x.round = r.round offset 0
) a
where r.workflow = :workflow and r.batch_key = :batch and r.state = 'awaiting_approval' and r.approval_id is null
  and r.id > :after and r.closed_at is null and r.lease_token is null and r.next_eligible_at <= :opened_at
order by r.id
limit :limit
for update of r skip locked
