-- What a request has done to the world so far, and how it ends when it is refused all the same.

-- An effect of which nobody can say that it did not happen. One that is to be sent again only because its provider would
-- recognise the key says so in its result.
create or replace function may_have_happened(effect effects) returns boolean
    language sql immutable
as $$
    select effect.state in ('in_flight', 'unknown', 'late') or (effect.state = 'intended' and effect.result is not null)
$$;

-- Where its request stops, such an effect is not sent again: what became of it is a person's to find out.
create or replace function doubt_effects() returns trigger
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
begin
    update effects e set state = 'unknown', result = null
    where e.request_id = new.id and e.state = 'intended' and e.result is not null;
    return null;
end
$$;

create or replace trigger requests_leave_no_doubt_aside after update of state on requests for each row
    when (old.state <> new.state and new.state in ('needs_review', 'dead_lettered', 'compensation_failed'))
    execute function doubt_effects();

-- The same words as policies.saga.Standing. Nothing may follow from it but under the request's row lock. What had a
-- proposal when the store was restored may have done anything, until that is looked up.
create or replace function effects_standing(p_request uuid) returns text
    language sql stable
as $$
    select case
        when exists (select from effects e where e.request_id = p_request and e.kind = 'forward' and e.state in ('done', 'late')
            and e.recovery ->> 'undo' is null) then 'irreversible'
        when exists (select from effects e where e.request_id = p_request and may_have_happened(e)) then 'uncertain'
        when exists (select from requests r where r.id = p_request and r.epoch < epoch_in_force())
            then 'uncertain'
        when exists (select from effects e where e.request_id = p_request and e.kind = 'forward' and e.state = 'done'
            and not exists (select from effects u where u.request_id = e.request_id and u.kind = 'compensation'
                and u.action_id = e.action_id and u.intent = e.intent and u.state = 'done')) then 'reversible'
        else 'nothing'
    end
$$;

-- Open a case for a person, or add to the one that is open.
create or replace function open_case(p_request uuid, p_step text, p_failure text) returns void
    language sql security definer set search_path = failsafe, pg_temp
as $$
    insert into dead_letters (request_id, step, failure, trace_id)
    select r.id, p_step, left(p_failure, 2000), r.trace_id from requests r where r.id = p_request
    on conflict (request_id) where closed_at is null
        do update set failure = right(dead_letters.failure || '; ' || excluded.failure, 2000) -- the latest is what is to be done
$$;

-- End a locked request by an event of its approval. Where effects stand from an earlier round it cannot just end: what
-- can be undone is undone, the rest is for a person (policies.saga.after_refusal). Returns the state it came to.
create or replace function end_round(p_request uuid, p_event text, p_state text, p_reason text) returns text
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    standing text := effects_standing(p_request);
    to_state text := case standing when 'nothing' then p_state when 'reversible' then 'compensating' else 'dead_lettered' end;
begin
    update requests set state = to_state, state_seq = state_seq + 1, next_eligible_at = clock_timestamp(), reason = p_reason,
        last_event = case standing when 'nothing' then p_event when 'reversible' then 'undo_needed' else 'gave_up' end,
        closed_at = case standing when 'nothing' then clock_timestamp() end
    where id = p_request;
    if standing = 'nothing' then
        delete from claims c where c.request_id = p_request; -- what stands keeps its claim: it is true of this request
    elsif to_state = 'dead_lettered' then
        perform open_case(p_request, 'approval', p_reason || ', after an effect was begun that is not undone');
    end if;
    return to_state;
end
$$;

-- Whether a pause of this scope and name holds an action, given every type that it goes by (its own, and its undo's where
-- it is being undone: who stops either means both).
create or replace function pause_holds(p_scope text, p_name text, p_workflow text, p_types text[], p_provider text) returns boolean
    language sql immutable
as $$
    select case p_scope
        when 'everything' then true
        when 'workflow' then p_name = p_workflow
        when 'action_type' then coalesce(p_name = any (p_types), false)
        when 'provider' then p_name = p_provider
    end
$$;
