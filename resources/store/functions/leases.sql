-- Taking work, keeping it and taking it back from a worker that died. All by the database clock.

-- Leases that ran out: effects in flight become unknown, the crash is counted, the request is free again.
-- Keyset-paged and one chunk a call, so a large backlog cannot hide later rows.
create or replace function sweep_leases(p_workflow text, p_batch text, p_limit integer) returns integer
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    swept uuid[];
    lost  text[];
begin
    select array_agg(id) into swept from (
        select id from requests
        where workflow = p_workflow and batch_key = p_batch
          and closed_at is null and lease_token is not null and lease_until < clock_timestamp()
        order by id limit p_limit for update skip locked
    ) due;
    if swept is null then
        -- Undoing what came late holds a lease on a request that may have ended.
        swept := array(select r.id from requests r
            where r.id in (select e.request_id from effects e where e.state = 'late' and e.undo_due_at is not null)
              and r.workflow = p_workflow and r.batch_key = p_batch and r.lease_until < clock_timestamp()
            order by r.id limit p_limit for update skip locked);
        swept := nullif(swept, '{}');
    end if;
    if swept is null then
        return 0;
    end if;
    -- The lease may have been renewed between the scan and the lock: decide again on the locked row.
    with freed as (
        update requests set lease_token = null, lease_until = null, crash_count = crash_count + 1,
            lone_crash_count = lone_crash_count + (case when lease_alone then 1 else 0 end), lease_alone = false
        where id = any (swept) and lease_token is not null and lease_until < clock_timestamp()
        returning id
    )
    select array_agg(id) into swept from freed;
    with uncertain as (
        update effects set state = 'unknown', outcome_at = clock_timestamp(), error = 'the worker stopped before it recorded an outcome'
        where request_id = any (swept) and state = 'in_flight'
        returning request_id, idempotency_key
    )
    select array_agg('request:' || request_id || ' ' || idempotency_key) into lost from uncertain;
    -- Whoever died with a late undo in hand may have died of it.
    update effects set undo_attempts = undo_attempts + 1 where request_id = any (swept) and state = 'late' and undo_due_at <= clock_timestamp();
    perform write_audit(
        array_agg('request:' || s), array_agg('request.lease_expired'::text), array_agg(duty()),
        array_agg(json_bytes(json_build_object('unknown_effects', (
            select coalesce(array_agg(split_part(l, ' ', 2)), '{}') from unnest(lost) l where split_part(l, ' ', 1) = 'request:' || s)))))
    from unnest(swept) s;
    return coalesce(cardinality(swept), 0);
end
$$;
