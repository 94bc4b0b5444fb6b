-- Restores. What was done after a backup was taken is not in it, so after a restore nothing of a request that was open
-- then is started until it was looked up at its providers. An epoch begins with each restore; a request is cleared for it.

-- On what this store lives. Another server has another system identifier, a promoted standby or a recovery to a point in
-- time has another timeline, a copy or a dump that was read in has another database. What the server does not tell does
-- not count: a restore that only this would show has to be said by an operator.
create or replace function store_identity() returns text
    language plpgsql stable security definer set search_path = failsafe, pg_temp
as $$
declare
    place text := (select oid::text from pg_database where datname = current_database());
begin
    return (select system_identifier from pg_control_system()) || ':'
        -- The control file learns of a promotion only at the next checkpoint, so the log that is written now is asked.
        || case when pg_is_in_recovery() then (select timeline_id from pg_control_checkpoint())
            else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer end || ':' || place;
exception when insufficient_privilege or feature_not_supported or undefined_function then
    return '?:?:' || place;
end
$$;

-- The epoch that counts now. On other ground than the last one was opened on it is the next, opened or not yet.
create or replace function epoch_in_force() returns integer
    language sql stable security definer set search_path = failsafe, pg_temp
as $$
    select coalesce((
        select e.number + case when e.identity = store_identity() then 0 else 1 end from epochs e order by e.number desc limit 1), 0)
$$;

-- Begin the next epoch; of two who begin it at once, one does. Returns whether this call did.
create or replace function begin_epoch(p_number integer, p_by uuid, p_reason text) returns boolean
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
begin
    insert into epochs (number, identity, opened_by, reason) values (p_number, store_identity(), p_by, p_reason)
    on conflict (number) do nothing;
    if not found then
        return false;
    end if;
    -- Nobody knows whether a late effect was undone since the backup: whoever wanted it looks, and asks again.
    perform from requests r where r.id in (select e.request_id from effects e where e.state = 'late' and e.undo_due_at is not null)
        order by r.id for update;
    perform open_case(e.request_id, 'late', e.idempotency_key || ': the store was restored; see whether it was undone already')
    from effects e where e.state = 'late' and e.undo_due_at is not null;
    update effects set undo_due_at = null where state = 'late' and undo_due_at is not null;
    return true;
end
$$;

-- Where the first request is taken in, it is noted on what ground that was.
create or replace function note_ground() returns void
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
begin
    if not exists (select from epochs) then
        perform begin_epoch(0, null, 'the first request');
    end if;
end
$$;

-- Open an epoch if the ground has changed since the last one. Returns the epoch in force.
create or replace function notice_restore() returns integer
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    latest integer := (select max(e.number) from epochs e);
    now_is integer := epoch_in_force();
begin
    if now_is > latest and begin_epoch(now_is, null, 'the store is on another server, timeline or database than before') then
        perform write_audit(array['system'], array['store.restored'], array[duty()], array[json_bytes(json_build_object(
            'epoch', now_is, 'identity', store_identity()))]);
    end if;
    return now_is;
end
$$;

-- An operator says that the store was restored. Returns the epoch that this began.
create or replace function declare_restored(p_session text, p_reason text) returns integer
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who    principals := require_operator(p_session);
    number integer := (select coalesce(max(e.number), 0) + 1 from epochs e);
begin
    perform note_ground();
    if not begin_epoch(number, who.id, p_reason) then
        raise exception 'an epoch began just now; ask again if that was not yours' using errcode = 'FS420';
    end if;
    perform write_operator_event(who, 'system', 'operator.restored',
        json_build_object('epoch', number, 'identity', store_identity(), 'reason', p_reason));
    return number;
end
$$;

-- The epoch in force, who opened it, and how many requests wait to be cleared for it. No row: nothing was ever restored.
create or replace function restore_standing()
    returns table (epoch integer, opened_at timestamptz, opened_by text, reason text, waiting bigint)
    language sql stable security definer set search_path = failsafe, pg_temp
as $$
    select n.epoch, e.opened_at, p.name, e.reason,
        (select count(*) from requests r where r.closed_at is null and r.epoch < n.epoch)
    from (select epoch_in_force()) n (epoch)
    left join epochs e on e.number = n.epoch
    left join principals p on p.id = e.opened_by
    where n.epoch > 0
$$;

-- What a request of before the restore may have done, as effects that nobody knows of: the usual look-up, outcome or person
-- follows. Only under a lease and only while the request is not cleared, so that nothing known can be made unknown.
create or replace function suspect_effects(
    p_token uuid, p_requests uuid[], p_ordinals integer[], p_kinds text[], p_providers text[], p_parameters_hashes bytea[],
    p_recoveries json[]) returns void
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    now_is    integer := epoch_in_force();
    restored  timestamptz := (select e.opened_at from epochs e where e.number = now_is);
    suspected text[];
begin
    perform from requests r where r.id = any (p_requests) order by r.id for update;
    with candidate as materialized (
        select effect_key(r.workflow, r.id, a.action_id, i.intent, w.kind) as key, r.id, r.revision, r.round, r.received_at, p.hash,
            a.action_id, case w.kind when 'compensation' then w.undo else a.type end as action_type, i.intent, w.*
        from (
            select s.*, d.recovery ->> 'undo' as undo
            from unnest(p_requests, p_ordinals, p_kinds, p_providers, p_parameters_hashes, p_recoveries)
                as s (request_id, ordinal, kind, provider, parameters_hash, plan)
            left join lateral (
                select x.recovery from effects x where x.request_id = s.request_id and x.ordinal = s.ordinal and x.kind = 'forward'
                order by x.intent desc limit 1
            ) d on true
        ) w
        join requests r on r.id = w.request_id and r.lease_token = p_token and r.epoch < now_is
        join proposals p on p.request_id = r.id and p.revision = r.revision and p.kind = 'proposal'
        cross join lateral json_to_record(convert_from(p.canonical, 'UTF8')::json #> array['actions', (w.ordinal - 1)::text])
            as a (action_id text, type text)
        cross join lateral (select intended_as(r.id, w.ordinal, w.kind, r.round)) i (intent)
    ), begun as (
        -- Certainly not sent, said the backup; that it was begun is the step between that and unknown.
        update effects e set state = 'in_flight', lease_token = p_token from candidate c
        where e.idempotency_key = c.key and e.state = 'intended' returning e.idempotency_key
    ), made as (
        insert into effects (idempotency_key, request_id, revision, action_id, action_type, ordinal, intent, round, kind, provider,
            proposal_hash, parameters_hash, recovery, state, first_sent_at, started_at, outcome_at, error)
        select c.key, c.id, c.revision, c.action_id, c.action_type, c.ordinal, c.intent, c.round, c.kind, c.provider,
            c.hash, c.parameters_hash, c.plan, 'unknown', c.received_at, restored, clock_timestamp(),
            'the store was restored: it may have been done after the backup was taken'
        from candidate c on conflict (idempotency_key) do nothing returning idempotency_key
    )
    select array_agg(k) into suspected from (select idempotency_key from begun union all select idempotency_key from made) s (k);
    update effects set state = 'unknown', lease_token = null where idempotency_key = any (suspected) and state = 'in_flight';
    perform write_audit(array_agg('request:' || e.request_id order by e.idempotency_key), array_agg('effect.suspected'::text),
        array_agg(duty()), array_agg(json_bytes(json_build_object('key', e.idempotency_key, 'epoch', now_is)) order by e.idempotency_key))
    from effects e where e.idempotency_key = any (suspected) having count(*) > 0;
end
$$;

-- It was found out what these requests did before the restore that began an epoch: their effects may start again, unless
-- there was another restore meanwhile. Returns those still ours.
create or replace function clear_requests(p_token uuid, p_requests uuid[], p_epoch integer) returns setof uuid
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    looked_at integer := least(p_epoch, epoch_in_force());
    cleared   uuid[];
begin
    with going as (
        update requests r set epoch = looked_at where r.id = any (p_requests) and r.lease_token = p_token and r.epoch < looked_at
        returning r.id
    )
    select array_agg(g.id order by g.id) into cleared from going g;
    perform write_audit(array_agg('request:' || c), array_agg('request.cleared'::text), array_agg(duty()),
        array_agg(json_bytes(json_build_object('epoch', looked_at)))) from unnest(cleared) c having count(*) > 0;
    return query select unnest(cleared);
end
$$;

-- A store that had requests before it had epochs is on its ground since now.
insert into epochs (number, identity, reason)
select 0, store_identity(), 'the first request' where exists (select from requests) on conflict do nothing;
