-- Take requests that were due when the pass opened. The CTE is an optimisation fence: the planner must not run LIMIT twice.
-- What may have done something that a restored store forgot is claimed to be cleared, and for nothing else.
with due as materialized (
    select id from requests
    where workflow = :workflow and batch_key = :batch and state = :state and id > :after
      and closed_at is null and lease_token is null and next_eligible_at <= :opened_at and (crash_count > 0) = :suspect
      and case when :restored then epoch < (select epoch_in_force())
          else exists (select from effects e where e.request_id = requests.id and e.state = 'unknown') = :unknown
              and (state not in ('executing', 'compensating') or epoch >= (select epoch_in_force())) end
    order by id
    limit :limit
    for update skip locked
)
update requests r
set lease_token = :token, lease_until = clock_timestamp() + :lease, lease_alone = :suspect
from due
where r.id = due.id and r.state = :state and r.lease_token is null
returning r.id, r.workflow_version, r.revision, r.round,
    case when r.supplied then supplied_payload(r.id) else r.payload end as payload, r.attempts, r.lone_crash_count,
    r.cancel_requested_at is not null as cancel_requested, coalesce(r.rechecked_until > clock_timestamp(), false) as rechecked
