-- What was missing: somebody adds fields to a request that needs review, and it begins anew with them as the next revision.
-- The payload stays as it was received; what is read instead of it stands in request_inputs.

create or replace function may_supply(who principals, request requests) returns boolean
    language sql immutable
as $$ select who.id = request.initiator or who.kind = 'human' and 'operator' = any (who.roles) $$;

-- Why nothing may be added to a request now; null: it may. Once an effect was begun its key belongs to what was proposed
-- then, and another proposal could name another action by it, so such a request does not come back this way, whatever the
-- effect came to. What a restored store forgot needs no refusal: the epoch stays as it is, so nothing starts before the
-- look-up, and that asks for the first effects of other proposals too.
create or replace function input_obstacle(request requests) returns text
    language sql stable
as $$
    select case
        when request.state = 'needs_review' and exists (select from effects e where e.request_id = request.id)
            then 'an effect of it was begun: cancel it, or discard it (failsafe dead-letters discard) and submit what is meant anew'
        when request.state = 'needs_review' and request.cancel_requested_at is not null
            then 'its cancellation was asked for: cancel it (failsafe cancel)'
        when request.state = 'needs_review' then null
        when request.closed_at is not null then 'it is ' || request.state || ': submit what is meant under another operation_id'
        when request.state = 'awaiting_approval' then 'it is awaiting_approval: who may decide can change it (failsafe edit)'
        when request.state = 'dead_lettered' then 'it is dead_lettered: redrive it first (failsafe dead-letters redrive)'
        else 'it is ' || request.state || ', and only what needs_review takes input: see what it comes to (failsafe show)'
    end
$$;

-- The payload that stands for a request whose `supplied` is set; ask only then.
create or replace function supplied_payload(p_request uuid) returns bytea
    language sql stable
as $$ select i.payload from request_inputs i where i.request_id = p_request order by i.revision desc limit 1 $$;

-- Whether somebody else than its initiator says part of what a request asks for; ask only where `supplied` is set.
create or replace function supplied_by_another(p_request uuid, p_initiator uuid) returns boolean
    language sql stable
as $$ select exists (select from request_inputs i where i.request_id = p_request and i.supplied_by <> p_initiator) $$;

-- The fields of a payload, each value as it is written, and so twice where one is named twice. Text in Postgres holds no
-- NUL, so another character stands for it here.
create or replace function payload_fields(p_payload bytea) returns table (name text, value text)
    language sql immutable
as $$ select f.key, f.value::text from json_each(replace(convert_from(p_payload, 'UTF8'), '\u0000', '\ufffd')::json) f $$;

-- Refuse whoever may not add to it, and what takes no input now.
create or replace function refuse_input(who principals, request requests) returns void
    language plpgsql stable security definer set search_path = failsafe, pg_temp
as $$
begin
    if request.id is null then
        raise exception 'there is no such request' using errcode = 'FS404';
    elsif may_supply(who, request) is not true then
        raise exception '% may not supply input to this request: it takes its initiator or a person with the role operator', who.name
            using errcode = 'FS403';
    elsif input_obstacle(request) is not null then
        raise exception 'nothing can be supplied: %', input_obstacle(request) using errcode = 'FS420';
    end if;
end
$$;

-- What somebody who may add to a request needs to do so.
create or replace function input_wanted(p_session text, p_request uuid)
    returns table (workflow text, workflow_version text, operation_id text, revision integer, payload bytea)
    language plpgsql stable security definer set search_path = failsafe, pg_temp
as $$
declare
    who     principals := session_principal(p_session);
    request requests;
begin
    select r.* into request from requests r where r.id = p_request;
    perform refuse_input(who, request);
    return query select request.workflow, request.workflow_version, request.operation_id, request.revision,
        case when request.supplied then supplied_payload(request.id) else request.payload end;
end
$$;

-- Add fields: the amended payload has every value of the one that stands, as it is written, and more. Whoever supplied
-- never decides on this request. Returns the revision that begins.
create or replace function supply_input(p_session text, p_request uuid, p_revision integer, p_payload bytea, p_reason text)
    returns integer
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who      principals := session_principal(p_session);
    request  requests;
    standing bytea;
    changed  text;
    added    text[];
begin
    select r.* into request from requests r where r.id = p_request for update;
    perform from principals p where p.id = who.id for share;
    who := session_principal(p_session); -- as they are now, after waiting
    perform refuse_input(who, request);
    if request.revision <> p_revision then
        raise exception 'the request went on meanwhile: show it again and supply what is missing now' using errcode = 'FS420';
    elsif coalesce(length(trim(p_reason)), 0) not between 1 and 500 then
        raise exception 'say where it comes from, in at most 500 characters' using errcode = 'FS400';
    end if;
    standing := case when request.supplied then supplied_payload(request.id) else request.payload end;
    select string_agg(distinct b.name, ', ' order by b.name) into changed
    from payload_fields(standing) b left join payload_fields(p_payload) a on a.name = b.name
    where b.value <> 'null' and a.value is distinct from b.value;
    added := array(select a.name from payload_fields(p_payload) a where a.value <> 'null' and not exists (
        select from payload_fields(standing) b where b.name = a.name and b.value <> 'null') order by a.name);
    if changed is not null then
        raise exception 'input only adds: % has a value already', changed using errcode = 'FS400';
    elsif cardinality(added) = 0 then
        raise exception 'nothing is added: name a field that has no value yet' using errcode = 'FS400';
    end if;
    insert into request_inputs (request_id, revision, supplied_by, supplied_at, fields, payload)
    values (request.id, request.revision + 1, who.id, clock_timestamp(), added, p_payload);
    update requests set state = 'received', last_event = 'input_supplied', state_seq = state_seq + 1, revision = revision + 1,
        supplied = true, attempts = 0, retry_until = null, crash_count = 0, lone_crash_count = 0, approval_id = null,
        rechecked_until = null, reason = null, next_eligible_at = clock_timestamp()
    where id = request.id; -- the round stays, as where a proposal is edited: the revision is new
    delete from claims c where c.request_id = request.id; -- taken again by what is proposed now, if they may be
    perform close_cases(who, array[request.id], 'input supplied: ' || p_reason);
    perform write_audit(array['request:' || request.id], array['request.input_supplied'], array['principal:' || who.id],
        array[json_bytes(json_build_object('event', 'input_supplied', 'state', 'received', 'revision', request.revision + 1,
            'fields', added, 'payload_sha256', encode(sha256(p_payload), 'hex'), 'reason', p_reason))]);
    return request.revision + 1;
end
$$;
