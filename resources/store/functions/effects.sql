-- Effects. start_effects is the only way to in_flight and record_outcomes the only way out of it.

-- Start what may start and say, for each that may not, why. Authority is recounted here, after every lock is held.
-- `p_intents` names the intent of a late effect that is to be undone, for which a person asked; it is null otherwise.
create or replace function start_effects(
    p_token uuid, p_provider text, p_requests uuid[], p_ordinals integer[], p_kinds text[], p_parameters_hashes bytea[], p_recoveries json[],
    p_intents integer[] default null)
    returns table (started_request uuid, started_ordinal integer, key text, refusal text, wait_seconds double precision)
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    instant timestamptz;
    gate    provider_gate;
    now_is  integer;
begin
    -- Lock order for everyone: requests by id, approvals, effects, principals, loans of roles, pauses, provider, audit heads.
    perform from requests r where r.id = any (p_requests) order by r.id for update;
    perform from approval_resolutions s where s.approval_id in (select r.approval_id from requests r where r.id = any (p_requests))
        order by s.approval_id for update;
    -- Request by request: for a long list the planner may read all effects there are.
    perform from (select distinct q.id from unnest(p_requests) q (id) order by q.id) w
        cross join lateral (select from effects e where e.request_id = w.id order by e.idempotency_key for update) locked;
    perform from principals p where p.id in (
        select r.initiator from requests r where r.id = any (p_requests)
        union
        select unnest(array[v.voter, v.in_place_of]) from approval_votes v
        where v.approval_id in (select r.approval_id from requests r where r.id = any (p_requests))
    ) order by p.id for share;
    perform from role_grants g where g.grantee in (
        select v.voter from approval_votes v
        where v.in_place_of is not null and v.approval_id in (select r.approval_id from requests r where r.id = any (p_requests))
    ) order by g.id for share;
    perform pg_advisory_xact_lock_shared(hashtext('failsafe.pauses'));
    gate := look_at_gate(p_provider);
    instant := clock_timestamp(); -- after locking: now() is when the transaction began
    now_is := epoch_in_force();

    return query
    with found as materialized (
    select w.request_id, w.ordinal, w.kind, w.parameters_hash, w.recovery,
        effect_key(r.workflow, r.id, act.id, i.intent, w.kind) as idempotency_key,
        act.id as action_id, case w.kind when 'compensation' then d.recovery ->> 'undo' else a.type end as action_type, p_provider as provider,
        e.state is not null as repeated,
        i.intent, r.revision, r.round, p.hash as proposal_hash, r.approval_id,
        case
            when r.id is null then 'no_such_request'
            when r.lease_token is distinct from p_token or r.lease_until <= instant then 'lease_lost'
            when w.kind = 'forward' and r.state <> 'executing' then 'not_executing'
            when w.kind = 'compensation' and r.state <> 'compensating' and not act.late then 'not_compensating'
            when case when act.late then now_is > (select max(z.number) from epochs z) else r.epoch < now_is and r.closed_at is null end
                then 'restored' -- what it did after the backup was taken is not looked up yet
            when w.kind = 'compensation' and not act.late and (d.state is distinct from 'done' or w.late_intent is not null)
                or w.kind = 'compensation' and d.recovery ->> 'undo' is null then 'nothing_to_undo'
            when w.kind = 'compensation' and not act.late and exists (
                select from effects later where later.request_id = r.id and later.kind = 'forward' and later.ordinal > w.ordinal
                    and later.state = 'done' and later.recovery ->> 'undo' is not null and not exists (
                        select from effects u where u.request_id = r.id and u.kind = 'compensation' and u.ordinal = later.ordinal
                            and u.intent = later.intent and u.state = 'done'))
                then 'later_action_open'
            when w.kind = 'forward' and r.cancel_requested_at is not null and not exists (
                select from effects pivot where pivot.request_id = r.id and pivot.kind = 'forward' and pivot.state = 'done'
                    and pivot.recovery ->> 'undo' is null) then 'cancel_requested'
            when sha256(convert_to('failsafe/proposal/v1', 'UTF8') || '\x00'::bytea || p.canonical) <> p.hash
                then 'hash_mismatch'
            when act.id is null or w.ordinal < 1 then 'no_such_action' -- a negative index counts from the end
            when w.kind = 'forward' and a.adapter is distinct from p_provider then 'wrong_provider'
            when w.kind = 'forward' and sha256(convert_to('failsafe/parameters/v1', 'UTF8') || '\x00'::bytea
                || convert_to(a.parameters::text, 'UTF8')) is distinct from w.parameters_hash
                then 'parameters_changed'
            when e.state is not null and e.state <> 'intended' then 'effect_' || e.state
            when w.kind = 'forward' and exists (select from effects o where o.request_id = r.id and o.ordinal = w.ordinal
                and o.kind = 'forward' and o.intent <> i.intent and o.state not in ('refused', 'fenced')) then 'effect_late'
            when e.state = 'intended' and e.repeat_until <= instant then 'key_forgotten' -- it may have happened under this key
            when w.kind = 'forward' and exists (
                select from generate_series(1, w.ordinal - 1) earlier where not exists (
                    select from effects d where d.request_id = r.id and d.ordinal = earlier and d.kind = 'forward' and d.state = 'done'))
                then 'earlier_action_open'
            when exists (select from pauses z where pause_holds(z.scope, z.name, r.workflow,
                array[a.type, d.recovery ->> 'undo'], p_provider)) then 'paused'
            when w.kind = 'compensation' then null -- planned before execution; needs no new authority
            when (select who.disabled_at is not null from principals who where who.id = r.initiator) then 'initiator_disabled'
            when r.rechecked_until is null or r.rechecked_until <= instant then 'not_rechecked'
            when j.mode is distinct from 'live' then 'not_live'
            when j.decision = 'auto' and p.edited_by is null and not (r.supplied and supplied_by_another(r.id, r.initiator))
                then null -- what somebody edited or supplied for another, somebody else approves
            when j.decision is distinct from 'review' then 'decision_refuses'
            when q.id is null or q.revision <> r.revision or q.round <> r.round or q.proposal_hash <> p.hash
                then 'no_approval'
            when s.outcome is distinct from 'released' then 'not_released'
            when s.consumed_at is null and q.expires_at <= instant then 'approval_expired'
            when exists (select from approval_votes v where v.approval_id = q.id and v.vote = 'deny') then 'denied'
            when cardinality(approving(q)) < q.quorum then 'too_few_votes'
        end as authority
    from unnest(p_requests, p_ordinals, p_kinds, p_parameters_hashes, p_recoveries, p_intents)
        as w (request_id, ordinal, kind, parameters_hash, recovery, late_intent)
    left join requests r on r.id = w.request_id
    left join proposals p on p.request_id = r.id and p.revision = r.revision and p.kind = 'proposal'
    left join lateral (
        select x.* from json_to_record(convert_from(p.canonical, 'UTF8')::json #> array['actions', (w.ordinal - 1)::text])
            as x (action_id text, type text, adapter text, parameters json) offset 0 -- read once a row
    ) a on true
    left join lateral (
        -- What an earlier round found refused or fenced is intended anew, under a new key; anything else keeps its intent
        -- and so its key. A compensation has the intent of what it undoes.
        select coalesce(case w.kind when 'compensation' then w.late_intent end,
            max(f.intent + case when w.kind = 'forward' and f.round < r.round and f.state in ('refused', 'fenced')
                then 1 else 0 end), 1) as intent
        from effects f where f.request_id = r.id and f.ordinal = w.ordinal and f.kind = 'forward'
    ) i on true
    -- Behind OFFSET 0 each row looks its effects up by key; joined freely, the planner may match every row with all effects.
    left join lateral (
        select x.state, x.first_sent_at + make_interval(secs => (x.result ->> 'repeat_within')::double precision) as repeat_until
        from effects x
        where x.request_id = r.id and x.ordinal = w.ordinal and x.kind = w.kind and x.intent = i.intent offset 0
    ) e on true
    left join lateral (
        select x.state, x.recovery, x.action_id, x.undo_due_at from effects x
        where w.kind = 'compensation' and x.request_id = r.id and x.ordinal = w.ordinal and x.kind = 'forward'
          and x.intent = i.intent offset 0
    ) d on true
    cross join lateral (
        -- A late effect may be of another revision than the one that stands; a person wants it undone, whatever its request is.
        select z.late, case when z.late then d.action_id else a.action_id end as id
        from (select w.late_intent is not null and coalesce(d.state = 'late' and d.undo_due_at is not null, false) as late) z
    ) act
    left join assessments j on j.request_id = r.id and j.revision = r.revision and j.round = r.round
    left join approval_requests q on q.id = r.approval_id
    left join approval_resolutions s on s.approval_id = q.id
    ), judged as materialized (
        -- What has authority still needs a permit: first come, first served, by request.
        select f.*, case
                when f.authority is not null then f.authority
                when gate.allowed < row_number() over (partition by f.authority is null order by f.request_id) then gate.because
                when f.repeated and gate.retries < row_number() over (
                    partition by f.authority is null, f.repeated order by f.request_id) then 'retry_budget'
            end as refusal
        from found f
    ), permitted as materialized (
        select take_permits(p_provider, count(*), count(*) filter (where t.repeated), gate.probing)
        from judged t where t.refusal is null having count(*) > 0
    ), started as (
        insert into effects (idempotency_key, request_id, revision, action_id, action_type, ordinal, intent, round, kind, provider,
            proposal_hash, parameters_hash, recovery, state, lease_token, first_sent_at, started_at)
        select t.idempotency_key, t.request_id, t.revision, t.action_id, t.action_type, t.ordinal, t.intent, t.round, t.kind, t.provider,
            t.proposal_hash, t.parameters_hash, t.recovery, 'in_flight', p_token, instant, instant
        from judged t where t.refusal is null
        on conflict (idempotency_key) do update -- started by the authority of this round, whatever an earlier one had
            set state = 'in_flight', lease_token = p_token, started_at = instant, attempts = effects.attempts + 1,
                outcome_at = null, error = null, revision = excluded.revision, round = excluded.round,
                proposal_hash = excluded.proposal_hash, parameters_hash = excluded.parameters_hash, recovery = excluded.recovery
            where effects.state = 'intended'
    ), consumed as (
        update approval_resolutions s set consumed_at = instant
        from judged t where t.refusal is null and t.kind = 'forward' and s.approval_id = t.approval_id and s.consumed_at is null
    ), events as (
        select array_agg('request:' || t.request_id order by t.idempotency_key) as streams,
            array_agg('effect.started'::text) as types, array_agg(duty()) as actors,
            array_agg(json_bytes(json_build_object('key', t.idempotency_key, 'action', t.action_type, 'provider', t.provider,
                'proposal', encode(t.proposal_hash, 'hex'), 'parameters', encode(t.parameters_hash, 'hex'),
                'approval', t.approval_id, 'recovery', t.recovery)) order by t.idempotency_key) as payloads
        from judged t where t.refusal is null
    ), audited as materialized (
        select count(*) from events v, write_audit(v.streams, v.types, v.actors, v.payloads) where v.streams is not null
    )
    select t.request_id, t.ordinal, t.idempotency_key, t.refusal,
        case when t.refusal = gate.because then gate.wait_seconds else 0 end
    from judged t, audited left join permitted on true;
end
$$;

-- Outcomes of effects this lease holds: effect, outbox event and audit event together. Rows of a lost lease change nothing.
create or replace function record_outcomes(
    p_token uuid, p_keys text[], p_states text[], p_references text[], p_results json[], p_errors text[])
    returns table (recorded_key text)
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    instant timestamptz;
    recorded text[];
begin
    perform from requests r where r.id in (select e.request_id from effects e where e.idempotency_key = any (p_keys))
        order by r.id for update;
    instant := clock_timestamp();
    with settled as (
        update effects e set state = o.state, provider_reference = o.reference, error = o.error, outcome_at = instant,
            -- That a later call did nothing says nothing of an earlier one under the same key.
            result = case when o.state = 'intended' then coalesce(o.result, e.result) else o.result end
        from unnest(p_keys, p_states, p_references, p_results, p_errors) as o (key, state, reference, result, error)
        join effects was on was.idempotency_key = o.key
        join requests r on r.id = was.request_id
        where e.idempotency_key = o.key and r.lease_token = p_token
          and (e.state = 'unknown' or (e.state = 'in_flight' and e.lease_token = p_token))
        returning e.*
    ), audited as (
        select * from write_audit(
            (select array_agg('request:' || s.request_id order by s.idempotency_key) from settled s),
            (select array_agg('effect.' || s.state order by s.idempotency_key) from settled s),
            (select array_agg('provider:' || s.provider order by s.idempotency_key) from settled s),
            (select array_agg(json_bytes(json_build_object('key', s.idempotency_key, 'reference', s.provider_reference,
                'result', s.result, 'error', s.error, 'attempts', s.attempts)) order by s.idempotency_key) from settled s))
        where exists (select from settled)
    ), numbered as (
        select s.*, row_number() over (order by s.idempotency_key) as ord from settled s
    ), published as (
        insert into outbox (aggregatetype, aggregateid, type, payload, aggregate_seq)
        select 'request', n.request_id, 'effect.' || n.state, json_build_object('key', n.idempotency_key,
            'action', n.action_type, 'reference', n.provider_reference)::jsonb, a.event_seq
        from numbered n join audited a on a.ordinal = n.ord
        where n.state in ('done', 'refused')
    ), told as materialized (
        select note_answers(s.provider, count(*) filter (where s.state in ('done', 'refused')),
            count(*) filter (where s.state in ('done', 'refused') and s.attempts > 1),
            count(*) filter (where s.state = 'unknown' or s.state = 'intended' and s.error is not null))
        from settled s group by s.provider order by s.provider
    ), heard as (select count(*) from told)
    select array_agg(s.idempotency_key) into recorded from settled s, heard;
    return query select unnest(recorded);
end
$$;

-- What an effect is known by, here and at its provider.
create or replace function effect_key(p_workflow text, p_request uuid, p_action_id text, p_intent integer, p_kind text) returns text
    language sql immutable
as $$
    select p_workflow || ':' || p_request || ':' || p_action_id || ':' || p_intent || case p_kind when 'compensation' then ':undo' else '' end
$$;

-- With what an effect was started: what a person looks for at the provider.
create or replace function parameters_of(p_effect effects) returns json
    language sql stable security definer set search_path = failsafe, pg_temp
as $$
    select case p_effect.kind
        when 'forward' then (
            select convert_from(p.canonical, 'UTF8')::json #> array['actions', (p_effect.ordinal - 1)::text, 'parameters']
            from proposals p
            where p.request_id = p_effect.request_id and p.hash = p_effect.proposal_hash and p.kind = 'proposal' limit 1)
        else (
            select f.recovery -> 'parameters' from effects f
            where f.request_id = p_effect.request_id and f.ordinal = p_effect.ordinal and f.intent = p_effect.intent and f.kind = 'forward')
        end
$$;

-- The intent under which start_effects would start an action of a request now.
create or replace function intended_as(p_request uuid, p_ordinal integer, p_kind text, p_round integer) returns integer
    language sql stable
as $$
    select coalesce(max(f.intent + case when p_kind = 'forward' and f.round < p_round and f.state in ('refused', 'fenced')
        then 1 else 0 end), 1)
    from effects f where f.request_id = p_request and f.ordinal = p_ordinal and f.kind = 'forward'
$$;
