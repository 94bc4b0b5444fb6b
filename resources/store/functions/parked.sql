-- Leaving the dead letters: redriven as a new attempt, or given up for good. Both by an operator, many at once, and told
-- first what would happen.

-- Why a request may not be redriven; null: it may.
create or replace function redrive_obstacle(request requests) returns text
    language sql stable
as $$
    select case
        when request.state <> 'dead_lettered' then 'it is ' || request.state
        when exists (select from effects e where e.request_id = request.id and e.state in ('unknown', 'in_flight'))
            then 'an effect of it is unknown: resolve it first (failsafe unknown list)'
        when exists (select from effects e where e.request_id = request.id and e.state = 'late')
            then 'an effect of it arrived late: resolve it first (failsafe unknown list)'
        when request.cancel_requested_at is not null and effects_standing(request.id) <> 'irreversible'
            then 'its cancellation was asked for: cancel it (failsafe cancel)'
    end
$$;

-- Why a request may not be given up; null: it may. One that has ended has at most a case to be closed.
create or replace function discard_obstacle(request requests) returns text
    language sql stable
as $$
    select case
        when exists (select from effects e where e.request_id = request.id and e.state in ('unknown', 'in_flight'))
            then 'an effect of it is unknown: resolve it first (failsafe unknown list)'
        when request.state in ('needs_review', 'dead_lettered', 'compensation_failed') then null
        when request.closed_at is null then 'it is ' || request.state
        when not exists (select from dead_letters d where d.request_id = request.id and d.closed_at is null)
            then 'it is ' || request.state || ' and has no open case'
    end
$$;

-- The effects that a request leaves in the world.
create or replace function done_and_not_undone(p_request uuid) returns text[]
    language sql stable
as $$
    select array(
        select e.idempotency_key from effects e
        where e.request_id = p_request and e.kind = 'forward' and e.state in ('done', 'late') and not exists (
            select from effects u where u.request_id = e.request_id and u.kind = 'compensation' and u.action_id = e.action_id
                and u.intent = e.intent and u.state = 'done')
        order by e.ordinal, e.intent)
$$;

create or replace function close_cases(p_who principals, p_requests uuid[], p_resolution text) returns void
    language sql security definer set search_path = failsafe, pg_temp
as $$
    update dead_letters d set closed_at = clock_timestamp(), closed_by = p_who.id, resolution = left(p_resolution, 2000)
    where d.request_id = any (p_requests) and d.closed_at is null
$$;

-- A new governed attempt: validation, policy, approval and idempotency all again; no old authority comes along.
create or replace function redrive_requests(p_session text, p_requests uuid[], p_reason text, p_dry_run boolean)
    returns table (request_id uuid, obstacle text, left_done text[])
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who   principals := require_operator(p_session);
    going uuid[];
begin
    perform from requests r where r.id = any (p_requests) order by r.id for update;
    return query select r.id, redrive_obstacle(r), done_and_not_undone(r.id) from requests r where r.id = any (p_requests) order by r.id;
    if p_dry_run then
        return;
    end if;
    going := array(select r.id from requests r where r.id = any (p_requests) and redrive_obstacle(r) is null order by r.id);
    update requests r set state = 'received', last_event = 'redriven', state_seq = r.state_seq + 1, round = r.round + 1,
        attempts = 0, retry_until = null, crash_count = 0, lone_crash_count = 0, approval_id = null, rechecked_until = null, reason = null,
        next_eligible_at = clock_timestamp()
    where r.id = any (going);
    perform close_cases(who, going, 'redriven: ' || p_reason);
    perform write_operator_event(who, 'request:' || g, 'operator.redriven',
        json_build_object('event', 'redriven', 'state', 'received', 'reason', p_reason)) from unnest(going) g;
end
$$;

-- Give parked requests up. What was done and is not undone stays so, and keeps its claims: it is still true of the request.
create or replace function discard_requests(p_session text, p_requests uuid[], p_reason text, p_dry_run boolean)
    returns table (request_id uuid, obstacle text, left_done text[])
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who     principals := require_operator(p_session);
    request requests;
begin
    perform from requests r where r.id = any (p_requests) order by r.id for update;
    return query select r.id, discard_obstacle(r), done_and_not_undone(r.id) from requests r where r.id = any (p_requests) order by r.id;
    if p_dry_run then
        return;
    end if;
    for request in select r.* from requests r where r.id = any (p_requests) and discard_obstacle(r) is null order by r.id loop
        perform write_operator_event(who, 'request:' || request.id, 'operator.discarded', json_build_object(
            'state', case when request.closed_at is null then 'failed' end, -- what has ended stays as it ended
            'reason', p_reason, 'left_done', done_and_not_undone(request.id)));
        perform close_cases(who, array[request.id], 'discarded: ' || p_reason);
        -- What came late stays as well, whoever wanted it undone before.
        update effects set undo_due_at = null where effects.request_id = request.id and state = 'late' and undo_due_at is not null;
        if request.closed_at is null then
            update requests set state = 'failed', state_seq = state_seq + 1, closed_at = clock_timestamp(),
                last_event = case request.state when 'compensation_failed' then 'resolved_failed' else 'discarded' end,
                reason = left('discarded: ' || p_reason, 500)
            where id = request.id;
            update effects e set state = 'fenced' where e.request_id = request.id and e.state = 'intended';
            if effects_standing(request.id) = 'nothing' then
                delete from claims c where c.request_id = request.id;
            end if;
        end if;
    end loop;
end
$$;
