-- Open work of a batch that waits for no person and whose time has come, and that does not move: why, how much, for how
-- long, and the oldest by name. A backlog that runs work off at this moment may lie as long as what is held.
with instant as materialized (
    select clock_timestamp() as now, case when exists (
        select from batch_runs b where b.workflow = :workflow and b.batch_key = :batch and b.moved > 0
          and b.beat_at > clock_timestamp() - cast(:untouched_for as interval))
        then greatest(cast(:untouched_for as interval), cast(:held_for as interval)) else :untouched_for end as may_lie
), due as (
    select r.id, r.operation_id, r.state, r.lease_token, r.retry_until, coalesce(r.reason, '') as reason, case
            when r.lease_token is not null then r.lease_until
            when r.state = 'awaiting_approval' then coalesce(a.expires_at, r.next_eligible_at)
            else r.next_eligible_at
        end as since
    from requests r
    left join approval_requests a on a.id = r.approval_id
    where r.workflow = :workflow and r.batch_key = :batch and r.closed_at is null
      and r.state in ('received', 'proposal_ready', 'awaiting_approval', 'executing', 'compensating')
), stuck as (
    select d.id, d.operation_id, case when d.lease_token is not null then 'lease_overdue' else 'untouched' end as why,
        '' as reason, d.since
    from due d, instant i
    where d.since <= i.now - case when d.lease_token is not null then cast(:untouched_for as interval) else i.may_lie end
    union all
    -- Since when it is held nobody wrote down; but its story has not gone on since.
    select d.id, d.operation_id, 'held', regexp_replace(d.reason, '^.*; waits: ', ''), story.ended_at
    from due d
    cross join instant i
    cross join lateral (
        select cast(e.at as timestamptz) as ended_at from audit_events e where e.stream = 'request:' || d.id
        order by e.seq desc limit 1) story
    where d.lease_token is null and d.state <> 'awaiting_approval' and d.reason <> '' and d.since > i.now - i.may_lie
      and story.ended_at <= i.now - cast(:held_for as interval)
      -- A failed attempt set a deadline, and may have been told when to come back; what is unknown has a check of its own.
      and (d.retry_until is null or d.retry_until < i.now or strpos(d.reason, :not_started) > 0)
      and not exists (select from effects e where e.request_id = d.id and e.state = 'unknown')
    union all
    select r.id, r.operation_id, 'held', 'the undo of what came late', e.undo_asked_at
    from effects e
    join requests r on r.id = e.request_id
    cross join instant i
    where r.workflow = :workflow and r.batch_key = :batch and e.state = 'late' and e.undo_due_at is not null
      and e.undo_asked_at <= i.now - cast(:held_for as interval)
)
select s.why, s.reason, count(*) as requests,
    cast(extract(epoch from max(i.now - s.since)) as float8) as oldest_seconds,
    (array_agg(s.operation_id order by s.since, s.id))[1:cast(:names as integer)] as oldest
from stuck s, instant i
group by s.why, s.reason
order by oldest_seconds desc, s.why, s.reason
limit :limit
