-- Those proposals that stand as they were read when nobody had validated them, locked, with their attempts so far.
select r.id, r.attempts
from unnest(cast(:ids as uuid[]), cast(:revisions as integer[]), cast(:rounds as integer[])) as p (id, revision, round)
join requests r on r.id = p.id
where r.state = 'proposal_ready' and r.revision = p.revision and r.round = p.round
  and r.closed_at is null and r.lease_token is null and r.next_eligible_at <= :opened_at
  and not exists (
    select from findings f where f.request_id = r.id and f.revision = r.revision and f.round = r.round offset 0)
order by r.id
for update of r skip locked
