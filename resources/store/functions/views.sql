-- What sensors, consoles and people read. Views may be rebuilt at every upgrade; the tables beneath them are not theirs.

-- Which batches have work that is due now, and why. Sensors start runs from this and hold no truth of their own.
create or replace view due_batches as
    select workflow, batch_key, reason, min(due_since) as due_since, count(*) as requests, max(due_since) as last_due_since
    from (
        select r.workflow, r.batch_key,
            case
                when r.lease_token is not null then 'lease_expired'
                when r.state = 'executing' and s.outcome = 'released' and s.consumed_at is null then 'approval_landed'
                when r.state = 'awaiting_approval' and r.approval_id is not null then 'approval_expired'
                when exists (select from effects e where e.request_id = r.id and e.state = 'unknown') then 'unknown_effect'
                when r.attempts > 0 then 'retry_due'
                else 'queued'
            end as reason,
            case
                when r.lease_token is not null then r.lease_until
                when r.state = 'awaiting_approval' and r.approval_id is not null then a.expires_at
                else r.next_eligible_at
            end as due_since
        from requests r
        left join approval_requests a on a.id = r.approval_id
        left join approval_resolutions s on s.approval_id = r.approval_id
        where r.closed_at is null and r.state in ('received', 'proposal_ready', 'awaiting_approval', 'executing', 'compensating')
        union all
        select r.workflow, r.batch_key, 'unknown_effect', coalesce(r.lease_until, e.undo_due_at)
        from effects e join requests r on r.id = e.request_id
        where e.state = 'late' and e.undo_due_at is not null -- it came late and is to be undone, whatever its request is
        union all
        select d.workflow, d.batch_key, 'notice_due', min(d.due_since) from approval_notices_due d
        group by d.workflow, d.batch_key, d.request_id
        union all
        -- The last open case was closed since a run looked: until one looks again the batch shows red without a reason.
        select r.workflow, r.batch_key, 'cases_closed', max(d.closed_at)
        from dead_letters d
        join requests r on r.id = d.request_id
        join batches b on b.workflow = r.workflow and b.batch_key = r.batch_key
        where d.closed_at > b.last_opened_at
        group by r.workflow, r.batch_key
        having not exists (
            select from dead_letters o join requests q on q.id = o.request_id
            where o.closed_at is null and q.workflow = r.workflow and q.batch_key = r.batch_key)
        union all
        -- The oldest question has used up half of its time since a run looked: the next one says so.
        select r.workflow, r.batch_key, 'approval_waits', min(a.opened_at + (a.expires_at - a.opened_at) / 2)
        from requests r
        join approval_requests a on a.id = r.approval_id
        join batches b on b.workflow = r.workflow and b.batch_key = r.batch_key
        where r.closed_at is null and r.state = 'awaiting_approval'
        group by r.workflow, r.batch_key, b.last_opened_at
        having min(a.opened_at + (a.expires_at - a.opened_at) / 2) > b.last_opened_at
    ) waiting
    where due_since <= clock_timestamp()
    group by workflow, batch_key, reason;

create or replace view batch_counts as
    select workflow, batch_key, state, count(*) as requests, sum(state_seq) as seq, min(received_at) as oldest
    from requests group by workflow, batch_key, state;

create or replace view requests_v as
    select r.id as request_id, r.workflow, r.workflow_version, r.tenant, r.operation_id, p.name as initiator, r.subject,
        r.batch_key, r.state, r.reason, r.revision, r.round, r.attempts, r.crash_count, r.next_eligible_at,
        r.received_at, r.closed_at, j.tier, j.decision, j.mode, j.policy_version
    from requests r
    join principals p on p.id = r.initiator
    left join assessments j on j.request_id = r.id and j.revision = r.revision and j.round = r.round;

create or replace view effects_v as
    select e.idempotency_key, e.request_id, r.workflow, r.batch_key, e.action_id, e.action_type, e.ordinal, e.intent, e.kind,
        e.provider, e.state, e.attempts, e.first_sent_at, e.outcome_at, e.provider_reference, e.error,
        encode(e.proposal_hash, 'hex') as proposal_hash
    from effects e join requests r on r.id = e.request_id;

create or replace view approvals_v as
    select a.id as approval_id, a.request_id, r.workflow, r.batch_key, r.operation_id, a.revision, a.round, a.tier, a.roles,
        a.quorum, a.opened_at, a.expires_at,
        -- An approval request that its request no longer waits for takes no votes, even where nothing resolved it.
        coalesce(s.outcome, case when r.approval_id = a.id and r.state = 'awaiting_approval' then 'open' else 'voided' end)
            as outcome, s.resolved_at, s.consumed_at,
        (select count(*) from approval_votes v where v.approval_id = a.id and v.vote = 'approve') as votes_for,
        encode(a.proposal_hash, 'hex') as proposal_hash, encode(a.review_hash, 'hex') as review_hash
    from approval_requests a
    join requests r on r.id = a.request_id
    left join approval_resolutions s on s.approval_id = a.id;

create or replace view audit_v as
    select stream, seq, type, at, role, actor, convert_from(payload, 'UTF8') as payload, encode(hash, 'hex') as hash
    from audit_events;
