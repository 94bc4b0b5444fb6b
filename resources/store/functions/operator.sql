-- What only an authenticated operator may do. Each act is one conditional change with its ledger event.

create or replace function require_operator(p_session text) returns principals
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who principals := session_principal(p_session);
begin
    if not ('operator' = any (who.roles)) then
        raise exception '% is no operator', who.name using errcode = 'FS403';
    end if;
    return who;
end
$$;

create or replace function write_operator_event(p_who principals, p_stream text, p_type text, p_payload json) returns void
    language sql security definer set search_path = failsafe, pg_temp
as $$ select write_audit(array[p_stream], array[p_type], array['principal:' || p_who.id], array[json_bytes(p_payload)]) $$;

-- Why one says that something is so: a person's word that changes what the store takes for true is not taken without.
create or replace function require_evidence(p_evidence text) returns void
    language plpgsql
as $$
begin
    if length(trim(p_evidence)) >= 10 then
        return;
    end if;
    raise exception 'say how you know, in ten characters or more' using errcode = 'FS400';
end
$$;

-- Decide against execution. Before any effect the request ends here; what was done and can be undone is undone; past the
-- pivot it is too late. While an effect is under way nobody knows which: the wish is kept, no other effect starts, and the
-- outcome decides. Whoever asks again is told the same.
create or replace function cancel_request(p_session text, p_request uuid, p_reason text) returns text
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who      principals := session_principal(p_session);
    request  requests;
    standing text;
    answer   text;
begin
    select r.* into request from requests r where r.id = p_request for update;
    if request.id is null then
        raise exception 'there is no such request' using errcode = 'FS404';
    end if;
    -- A dead letter is in an operator's hands, so nobody else takes it out of them.
    if not ('operator' = any (who.roles)) and (who.id <> request.initiator or request.state = 'dead_lettered') then
        raise exception '% may not cancel this request: it takes an operator, or its initiator while it is not parked', who.name
            using errcode = 'FS403';
    end if;
    if request.state = 'cancelled' then
        return 'cancelled';
    elsif request.cancel_requested_at is not null and request.state = 'compensating' then
        return 'compensating';
    elsif request.state not in ('received', 'proposal_ready', 'awaiting_approval', 'executing', 'needs_review', 'dead_lettered') then
        raise exception 'the request is %: it can no longer be cancelled', request.state using errcode = 'FS420';
    end if;
    standing := effects_standing(p_request);
    if standing = 'irreversible' then
        raise exception 'an action that cannot be undone is already done: it is too late to cancel' using errcode = 'FS420';
    elsif standing = 'uncertain' and request.state <> 'executing' and request.epoch < epoch_in_force() then
        raise exception 'the store was restored and it is not looked up yet what this request did before: let a run do that, or, where it is parked, discard it'
            using errcode = 'FS420';
    elsif standing = 'uncertain' and request.state <> 'executing' then
        raise exception 'nobody knows yet what became of an effect of it: resolve that first (failsafe unknown list)'
            using errcode = 'FS420';
    elsif standing = 'uncertain' then
        if request.cancel_requested_at is null then
            update requests set cancel_requested_at = clock_timestamp(),
                next_eligible_at = least(next_eligible_at, clock_timestamp())
            where id = p_request;
            perform write_operator_event(who, 'request:' || p_request, 'request.cancel_requested',
                json_build_object('reason', p_reason));
        end if;
        return 'uncertain';
    end if;

    answer := case standing when 'reversible' then 'compensating' else 'cancelled' end;
    if request.approval_id is not null then
        insert into approval_resolutions (approval_id, outcome, resolved_at)
        values (request.approval_id, 'cancelled', clock_timestamp())
        on conflict (approval_id) do nothing;
    end if;
    update requests set state = answer, last_event = case answer when 'cancelled' then 'cancelled' else 'undo_needed' end,
        state_seq = state_seq + 1, attempts = 0, retry_until = null, cancel_requested_at = clock_timestamp(), next_eligible_at = clock_timestamp(),
        closed_at = case answer when 'cancelled' then clock_timestamp() end,
        lease_token = null, lease_until = null, lease_alone = false, reason = left('cancelled: ' || p_reason, 500)
    where id = p_request;
    if answer = 'cancelled' then
        -- Never to be called again: should a provider report one after all, it is late, and a case.
        update effects set state = 'fenced' where request_id = p_request and state = 'intended';
        delete from claims c where c.request_id = p_request;
    end if;
    perform close_cases(who, array[p_request], 'cancelled: ' || p_reason);
    perform write_operator_event(who, 'request:' || p_request, 'request.cancelled', json_build_object(
        'event', case answer when 'cancelled' then 'cancelled' else 'undo_needed' end, 'state', answer, 'reason', p_reason));
    return answer;
end
$$;

-- A person found out what became of an effect that nobody could tell, or what is to be made of a late one: done, it
-- stands and counts; not done, its key is fenced for ever. A parked request stays parked until it is redriven or discarded.
create or replace function resolve_unknown(p_session text, p_key text, p_done boolean, p_evidence text) returns uuid
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who    principals := require_operator(p_session);
    effect effects;
begin
    perform require_evidence(p_evidence);
    perform from requests r where r.id = (select e.request_id from effects e where e.idempotency_key = p_key) for update;
    select e.* into effect from effects e where e.idempotency_key = p_key for update;
    if effect.idempotency_key is null then
        raise exception 'there is no effect with this key' using errcode = 'FS404';
    elsif effect.state not in ('unknown', 'late') then
        raise exception 'the effect is %: only an unknown or late one is resolved by hand', replace(effect.state, '_', ' ')
            using errcode = 'FS420';
    end if;
    if effect.state = 'late' and exists (select from effects u where u.request_id = effect.request_id and u.kind = 'compensation'
        and u.ordinal = effect.ordinal and u.intent = effect.intent and u.state in ('in_flight', 'unknown')) then
        raise exception 'its undo is under way, or unknown: see first what becomes of that' using errcode = 'FS420';
    end if;
    update effects set state = case when p_done then 'done' else 'fenced' end, outcome_at = clock_timestamp(), undo_due_at = null,
        error = left('resolved by hand: ' || p_evidence, 500)
    where idempotency_key = p_key;
    update requests set next_eligible_at = clock_timestamp()
    where id = effect.request_id and state in ('executing', 'compensating');
    if exists (select from requests r where r.id = effect.request_id and r.closed_at is not null)
        and not exists (select from effects e where e.request_id = effect.request_id and e.state in ('late', 'unknown')) then
        perform close_cases(who, array[effect.request_id], 'resolved by hand: ' || p_evidence); -- it was about these alone
    end if;
    perform write_operator_event(who, 'request:' || effect.request_id, 'operator.resolved_unknown',
        json_build_object('key', p_key, 'was', effect.state, 'done', p_done, 'evidence', p_evidence));
    return effect.request_id;
end
$$;

-- A person restored what a failed compensation could not.
create or replace function resolve_compensation(p_session text, p_request uuid, p_evidence text) returns void
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who     principals := require_operator(p_session);
    request requests;
begin
    perform require_evidence(p_evidence);
    select r.* into request from requests r where r.id = p_request for update;
    if request.id is null then
        raise exception 'there is no such request' using errcode = 'FS404';
    elsif request.state <> 'compensation_failed' then
        raise exception 'the request is %: no compensation of it failed', request.state using errcode = 'FS420';
    elsif exists (select from effects e where e.request_id = p_request and e.state in ('unknown', 'in_flight')) then
        raise exception 'an effect of it is unknown: resolve it first' using errcode = 'FS420';
    end if;
    update requests set state = 'compensated', last_event = 'resolved_compensated', state_seq = state_seq + 1,
        closed_at = clock_timestamp(), reason = left('restored by hand: ' || p_evidence, 500)
    where id = p_request;
    perform close_cases(who, array[p_request], 'restored by hand: ' || p_evidence);
    delete from claims c where c.request_id = p_request;
    perform write_operator_event(who, 'request:' || p_request, 'operator.resolved_compensation',
        json_build_object('event', 'resolved_compensated', 'state', 'compensated', 'evidence', p_evidence));
end
$$;
