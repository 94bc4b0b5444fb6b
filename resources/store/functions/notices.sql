-- What people are told about approval requests while they wait, and about cases that wait for a person. Told through the
-- outbox: whether it arrives changes nothing that is decided.

-- Reminders and escalations whose time has come and that nobody announced yet.
create or replace view approval_notices_due as
    select r.workflow, r.batch_key, r.id as request_id, a.id as approval_id, n.kind, n.level, n.roles, n.due_since, a.tier, a.expires_at
    from requests r
    join approval_requests a on a.id = r.approval_id
    cross join lateral (
        select 'reminder' as kind, 0 as level, a.roles, a.opened_at + a.remind_after as due_since
        union all
        select 'escalated', step.level::integer, array(select json_array_elements_text(step.it -> 'roles')),
            a.opened_at + (step.it ->> 'after_seconds')::double precision * interval '1 second'
        from json_array_elements(a.escalations) with ordinality step (it, level)
    ) n
    where r.closed_at is null and r.state = 'awaiting_approval' and n.due_since <= clock_timestamp() and a.expires_at > clock_timestamp()
      and not exists (select from approval_notices t where (t.approval_id, t.kind, t.level) = (a.id, n.kind, n.level));

-- Announce what is due, each once: the request's lock makes it one pass's, and the key refuses a second.
create or replace function announce_waiting(p_workflow text, p_batch text, p_limit integer) returns integer
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    locked    uuid[];
    announced integer;
begin
    select array_agg(l.id) into locked from (
        select r.id from requests r
        where r.workflow = p_workflow and r.batch_key = p_batch and r.closed_at is null and r.state = 'awaiting_approval'
          and r.id in (select d.request_id from approval_notices_due d where d.workflow = p_workflow and d.batch_key = p_batch)
        order by r.id limit p_limit for update of r skip locked
    ) l;
    -- Read anew under the locks: somebody may have decided, or announced it, before they were ours.
    with noticed as (
        insert into approval_notices (approval_id, kind, level, noticed_at)
        select d.approval_id, d.kind, d.level, clock_timestamp() from approval_notices_due d where d.request_id = any (locked)
        on conflict do nothing
        returning approval_id, kind, level
    ), told as materialized (
        select 'request:' || a.request_id as stream, 'approval.' || n.kind as type, json_build_object(
            'workflow', p_workflow, 'approval', a.id, 'level', n.level,
            'tier', a.tier, 'expires_at', utc_text(a.expires_at), 'roles', case n.level when 0 then array_to_json(a.roles)
                else (a.escalations -> (n.level - 1) -> 'roles')::json end) as payload
        from noticed n join approval_requests a on a.id = n.approval_id
        order by a.request_id, n.kind desc, n.level
    )
    select announce(array_agg(t.stream), array_agg(t.type), array_agg(t.payload)) into announced from told t having count(*) > 0;
    return coalesce(announced, 0);
end
$$;

create or replace function announce_asked(p_streams text[], p_payloads json[]) returns void
    language sql security definer set search_path = failsafe, pg_temp
as $$ select announce(p_streams, array_fill('approval.requested'::text, array[cardinality(p_streams)]), p_payloads) $$;

-- A case waits for a person, whichever code opened it.
create or replace function announce_cases() returns trigger
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
begin
    perform announce(array_agg('request:' || o.request_id order by o.request_id), array_agg('case.opened'::text),
        array_agg(json_build_object('workflow', r.workflow, 'case', o.id, 'step', o.step, 'state', r.state) order by o.request_id))
    from opened o join requests r on r.id = o.request_id having count(*) > 0;
    return null;
end
$$;

create or replace trigger dead_letters_are_announced after insert on dead_letters referencing new table as opened
    for each statement execute function announce_cases();
