-- Accept requests: authenticate, store, acknowledge. One call takes a chunk; uniqueness decides races.

create or replace function batch_key_at(instant timestamptz, kind text, zone text) returns text
    language sql stable
as $$
    select to_char(instant at time zone zone, case kind when 'hour' then 'YYYY-MM-DD-HH24' else 'YYYY-MM-DD' end)
$$;

-- The window rule is fixed by the first request; only the start may move, and only earlier.
create or replace function register_workflow(p_name text, p_kind text, p_zone text, p_since date) returns void
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    known workflows;
begin
    insert into workflows (name, batch_kind, batch_zone, since) values (p_name, p_kind, p_zone, p_since)
    on conflict (name) do nothing;
    select * into known from workflows where name = p_name;
    if (known.batch_kind, known.batch_zone) <> (p_kind, p_zone) or known.since < p_since then
        raise exception 'workflow % has batches by % in % since %; the window rule is fixed by the first request',
            p_name, known.batch_kind, known.batch_zone, known.since using errcode = 'FS409';
    end if;
    if p_since < known.since then
        update workflows set since = p_since where name = p_name and since > p_since;
    end if;
end
$$;

create or replace function accept_requests(
    p_token text, p_workflow text, p_version text, p_tenant text, p_roles_needed text[],
    p_operation_ids text[], p_subjects text[], p_payloads bytea[], p_fingerprints bytea[])
    returns table (ordinal bigint, outcome text, request_id uuid, request_batch_key text, request_received_at timestamptz)
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who     principals := authenticate(p_token);
    instant timestamptz := clock_timestamp();
    batch   text;
    now_is  integer;
    ids     uuid[] := array(select new_id() from generate_subscripts(p_operation_ids, 1));
begin
    select batch_key_at(instant, w.batch_kind, w.batch_zone) into batch from workflows w where w.name = p_workflow;
    if batch is null then
        raise exception 'workflow % is not registered', p_workflow using errcode = 'FS404';
    end if;
    if cardinality(p_roles_needed) > 0 and not (who.roles && p_roles_needed) then
        raise exception '% holds none of the roles that may submit: %', who.name, p_roles_needed using errcode = 'FS403';
    end if;
    insert into batches (workflow, batch_key) values (p_workflow, batch) on conflict do nothing;
    perform note_ground();
    now_is := epoch_in_force();

    insert into requests (id, workflow, workflow_version, tenant, operation_id, initiator, subject, authorization_context,
        payload, payload_fingerprint, batch_key, next_eligible_at, trace_id, received_at, epoch)
    select i.id, p_workflow, p_version, p_tenant, i.operation_id, who.id, i.subject,
        json_build_object('roles', who.roles, 'name', who.name), i.payload, i.fingerprint, batch, instant,
        replace(i.id::text, '-', ''), instant, now_is
    from unnest(ids, p_operation_ids, p_subjects, p_payloads, p_fingerprints)
        with ordinality i (id, operation_id, subject, payload, fingerprint, ord)
    order by i.operation_id collate "C", i.ord -- one order for everyone, so that overlapping chunks wait instead of deadlocking
    on conflict (tenant, workflow, operation_id) do nothing;

    return query
        with judged as materialized (
            select i.ord, i.operation_id, i.fingerprint, q.id, q.batch_key, q.received_at,
                case when q.id = i.id then 'accepted'
                     when q.payload_fingerprint = i.fingerprint and q.subject is not distinct from i.subject
                        then 'replayed' else 'conflict' end as verdict
            from unnest(ids, p_operation_ids, p_subjects, p_fingerprints)
                with ordinality i (id, operation_id, subject, fingerprint, ord)
            join requests q on q.tenant = p_tenant and q.workflow = p_workflow and q.operation_id = i.operation_id
        ), events as (
            select array_agg('request:' || j.id order by j.ord) as streams,
                array_agg(case j.verdict when 'accepted' then 'request.received' else 'request.conflict' end order by j.ord) as types,
                array_agg('principal:' || who.id order by j.ord) as actors,
                array_agg(json_bytes(json_build_object('operation_id', j.operation_id, 'fingerprint',
                    encode(j.fingerprint, 'hex'), 'workflow', p_workflow, 'version', p_version, 'batch', batch)) order by j.ord)
                    as payloads
            from judged j where j.verdict <> 'replayed'
        ), audited as materialized (
            select count(*) from events e, write_audit(e.streams, e.types, e.actors, e.payloads) where e.streams is not null
        )
        select j.ord, j.verdict, j.id, j.batch_key, j.received_at from judged j, audited order by j.ord;
end
$$;
