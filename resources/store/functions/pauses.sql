-- The pause switch. start_effects holds its lock in common and reads it last, so what is paused stops at once.

-- Stop starting effects. Waits for starts under way, so once it returns nothing in its scope starts any more. Answers how
-- many requests it holds back now, and the effects that are in flight and can no longer be stopped.
create or replace function pause_work(p_session text, p_scope text, p_name text, p_reason text)
    returns table (held_back bigint, in_flight text[])
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who principals := require_operator(p_session);
begin
    perform require_pausable(p_scope, p_name);
    perform pg_advisory_xact_lock(hashtext('failsafe.pauses'));
    insert into pauses (scope, name, paused_by, reason) values (p_scope, p_name, who.id, p_reason)
    on conflict (scope, name) do update set reason = excluded.reason, paused_by = excluded.paused_by;
    perform write_operator_event(who, 'system', 'operator.paused',
        json_build_object('scope', p_scope, 'name', p_name, 'reason', p_reason));
    return query select h.held_back, h.in_flight from pause_reach(p_scope, p_name) h;
end
$$;

-- A name that means nothing would stop nothing, and whoever gave it would believe otherwise.
create or replace function require_pausable(p_scope text, p_name text) returns void
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    known text;
begin
    if (case p_scope
        when 'everything' then p_name = '*'
        when 'workflow' then exists (select from workflows w where w.name = p_name)
        when 'action_type' then exists (select from action_types a where a.action_type = p_name)
        when 'provider' then exists (select from action_types a where a.provider = p_name)
    end) then
        return;
    end if;
    select string_agg(k.name, ', ' order by k.name) into known from (
        select w.name from workflows w where p_scope = 'workflow'
        union select case p_scope when 'action_type' then a.action_type else a.provider end from action_types a
        where p_scope in ('action_type', 'provider')
    ) k;
    raise exception 'there is no % called %: nothing was paused%', replace(p_scope, '_', ' '), p_name, coalesce('; known: ' || known, '')
        using errcode = 'FS404';
end
$$;

-- What a pause of this scope and name holds back of the requests that may start effects, and what it comes too late for.
create or replace function pause_reach(p_scope text, p_name text) returns table (held_back bigint, in_flight text[])
    language sql stable security definer set search_path = failsafe, pg_temp
as $$
    with released as (
        select r.id, r.workflow, r.state, p.canonical
        from requests r
        join proposals p on p.request_id = r.id and p.revision = r.revision and p.kind = 'proposal'
        where r.closed_at is null and r.state in ('executing', 'compensating')
    ), actions as (
        select r.id, r.workflow, r.state, a.ordinal, a.action ->> 'type' as action_type, a.action ->> 'adapter' as provider
        from released r,
            json_array_elements(convert_from(r.canonical, 'UTF8')::json -> 'actions') with ordinality a (action, ordinal)
    ), to_do as (
        select a.id, a.workflow, array[a.action_type] as types, a.provider
        from actions a
        where a.state = 'executing' and not exists (
            select from effects e where e.request_id = a.id and e.ordinal = a.ordinal and e.kind = 'forward'
                and e.state in ('in_flight', 'done', 'late'))
        union all
        select a.id, a.workflow, array[a.action_type, d.recovery ->> 'undo'], coalesce(t.provider, a.provider)
        from actions a
        join effects d on d.request_id = a.id and d.ordinal = a.ordinal and d.kind = 'forward' and d.state = 'done'
            and d.recovery ->> 'undo' is not null
        left join action_types t on t.workflow = a.workflow and t.action_type = d.recovery ->> 'undo'
        where a.state = 'compensating' and not exists (
            select from effects u where u.request_id = a.id and u.ordinal = a.ordinal and u.kind = 'compensation'
                and u.state in ('in_flight', 'done', 'late'))
        union all
        select e.request_id, r.workflow, array[split_part(e.action_id, ':', 2), e.recovery ->> 'undo'], coalesce(t.provider, e.provider)
        from effects e
        join requests r on r.id = e.request_id
        left join action_types t on t.workflow = r.workflow and t.action_type = e.recovery ->> 'undo'
        where e.state = 'late' and e.undo_due_at is not null and not exists (
            select from effects u where u.request_id = e.request_id and u.ordinal = e.ordinal and u.intent = e.intent
                and u.kind = 'compensation' and u.state in ('in_flight', 'done'))
    )
    select (select count(distinct d.id) from to_do d where pause_holds(p_scope, p_name, d.workflow, d.types, d.provider)),
        (select coalesce(array_agg(e.idempotency_key order by e.idempotency_key), '{}')
            from effects e join requests r on r.id = e.request_id
            -- An undo also goes by the type of what it undoes, which its action_id names after the ordinal.
            where e.state = 'in_flight' and pause_holds(p_scope, p_name, r.workflow,
                array[e.action_type, substr(e.action_id, strpos(e.action_id, ':') + 1)], e.provider))
$$;

-- What was held back is due at once; false if there was no such pause.
create or replace function resume_work(p_session text, p_scope text, p_name text, p_reason text) returns boolean
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who  principals := require_operator(p_session);
    held uuid[];
begin
    select array_agg(h.id) into held from (
        select r.id from requests r
        where r.closed_at is null and r.state in ('executing', 'compensating') and r.reason like '%not started: paused' and r.lease_token is null
        order by r.id for update
    ) h;
    delete from pauses p where p.scope = p_scope and p.name = p_name;
    if not found then
        return false;
    end if;
    update requests set next_eligible_at = clock_timestamp() where id = any (held);
    perform write_operator_event(who, 'system', 'operator.resumed',
        json_build_object('scope', p_scope, 'name', p_name, 'reason', p_reason));
    return true;
end
$$;
