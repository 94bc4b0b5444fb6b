-- The append-only ledger. Nobody has a grant on its tables: rows come through these functions and never change.

create or replace function duty() returns text
    language sql stable
as $$
    -- SET ROLE shows in the setting even inside SECURITY DEFINER functions; current_user would be their owner.
    select coalesce(nullif(current_setting('role'), 'none'), session_user::text)
$$;

create or replace function json_bytes(document json) returns bytea
    language sql immutable
as $$ select convert_to(document::text, 'UTF8') $$;

create or replace function utc_text(instant timestamptz) returns text
    language sql stable
as $$ select to_char(instant at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;

-- What is hashed before an event's payload; policies/audit.py derives the same bytes. Stable, so that it is inlined.
create or replace function audit_header(stream text, seq bigint, type text, at text, role text, actor text) returns bytea
    language sql stable
as $$
    select convert_to('failsafe/audit/v1' || E'\n' || stream || E'\n' || seq || E'\n' || type || E'\n' || at || E'\n' || role
        || E'\n' || actor || E'\n', 'UTF8')
$$;

-- Append events in stream order; stamps time, role and a gapless seq, chains sha256(prev || header || payload).
create or replace function write_audit(streams text[], types text[], actors text[], payloads bytea[])
    returns table (ordinal bigint, event_seq bigint)
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    at_text    text := utc_text(clock_timestamp());
    role_text  text := duty();
    locked     bigint;
begin
    -- Heads are locked by a statement of their own, so that the one that chains sees them as their last writer left them.
    perform from audit_heads h where h.stream = any (streams) order by h.stream collate "C" for update;
    get diagnostics locked = row_count;
    if locked < cardinality(streams) then
        insert into audit_heads (stream, seq, hash)
        select distinct s, 0, decode(repeat('00', 32), 'hex')
        from unnest(streams) s
        where not exists (select from audit_heads h where h.stream = s)
        order by 1
        on conflict do nothing;
        perform from audit_heads h where h.stream = any (streams) order by h.stream collate "C" for update;
    end if;

    return query
    -- A step of the recursion takes one event of each stream; most calls have no more than one of each.
    with recursive event as materialized (
        select e.*, row_number() over each_stream as nth, lead(e.ord) over each_stream is null as is_last
        from unnest(streams, types, actors, payloads) with ordinality e (stream, type, actor, payload, ord)
        window each_stream as (partition by e.stream order by e.ord)
    ), chained as (
        select e.*, h.seq + 1 as seq,
            sha256(h.hash || audit_header(e.stream, h.seq + 1, e.type, at_text, role_text, e.actor) || e.payload) as hash
        from event e join audit_heads h on h.stream = e.stream
        where e.nth = 1
        union all
        select e.*, c.seq + 1,
            sha256(c.hash || audit_header(e.stream, c.seq + 1, e.type, at_text, role_text, e.actor) || e.payload)
        from chained c join event e on e.stream = c.stream and e.nth = c.nth + 1
        where not c.is_last
    ), written as (
        insert into audit_events (stream, seq, type, at, role, actor, payload, hash)
        select c.stream, c.seq, c.type, at_text, role_text, c.actor, c.payload, c.hash from chained c
    ), moved as (
        update audit_heads h set seq = c.seq, hash = c.hash from chained c where h.stream = c.stream and c.is_last
    )
    select c.ord, c.seq from chained c;
end
$$;

-- What a login role may write into the ledger by its own hand. Votes, starts and outcomes are written by their functions.
create or replace function may_append(role_name text, event_type text) returns boolean
    language sql immutable
as $$
    select case role_name
        when 'failsafe_intake' then event_type like 'intake.%'
        when 'failsafe_worker' then event_type ~ '^(proposal|validation|assessment)\.recorded$|^approval\.(stale|still_satisfied)$|^request\.(parked|review_needed|concluded|not_started|stopped)$'
        when 'failsafe_operator' then event_type like 'operator.%'
        else false
    end
$$;

create or replace function append_audit(streams text[], types text[], actors text[], payloads bytea[])
    returns table (ordinal bigint, event_seq bigint)
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    refused text;
begin
    select t into refused from (select distinct one from unnest(types) one) named (t) where not may_append(duty(), t) limit 1;
    if found then
        raise exception 'role % may not write audit events of type %', duty(), refused using errcode = 'FS001';
    end if;
    return query select * from write_audit(streams, types, actors, payloads);
end
$$;

-- Events in the ledger and the same for consumers: the place of each in the outbox is its place in the chain.
create or replace function announce(p_streams text[], p_types text[], p_payloads json[]) returns bigint
    language sql security definer set search_path = failsafe, pg_temp
as $$
    with told as (
        insert into outbox (aggregatetype, aggregateid, type, payload, aggregate_seq)
        select 'request', substr(p_streams[w.ordinal], 9), p_types[w.ordinal], p_payloads[w.ordinal]::jsonb, w.event_seq
        from write_audit(p_streams, p_types, array_fill(duty(), array[cardinality(p_streams)]),
            array(select json_bytes(p) from unnest(p_payloads) with ordinality o (p, ord) order by ord)) w
        returning 1
    )
    select count(*) from told
$$;
