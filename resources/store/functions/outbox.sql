-- Publishing what the outbox holds. Nobody has a grant on its rows: a worker claims, and says what became of its claims.
-- Published rows stay: they are what was told, and when. Only partial indexes look at those that are not published.

-- The events that may be sent now: the first open one of each aggregate, unless somebody holds it or it has to wait.
-- aggregate_seq was given out under the aggregate's row lock, so an earlier event can never appear after a later one.
create or replace view outbox_due as
    select o.id, o.created_at
    from outbox o
    where o.published_at is null and o.parked_at is null
      and (o.claim_until is null or o.claim_until <= clock_timestamp())
      and not exists (
          select from outbox earlier
          where earlier.aggregatetype = o.aggregatetype and earlier.aggregateid = o.aggregateid
            and earlier.aggregate_seq < o.aggregate_seq and earlier.published_at is null and earlier.parked_at is null);

-- Take events for p_length. The attempt is counted now: whoever dies with an event has used one up.
create or replace function claim_events(p_token uuid, p_limit integer, p_length interval)
    returns table (id uuid, aggregatetype text, aggregateid text, aggregate_seq bigint, type text, payload text,
        created_at timestamptz, attempts integer)
    language sql security definer set search_path = failsafe, pg_temp
as $$
    with due as materialized (
        select d.id from outbox_due d order by d.created_at, d.id limit p_limit for update skip locked
    )
    update outbox o
    set claim_token = p_token, claim_until = clock_timestamp() + p_length, attempts = o.attempts + 1
    from due
    where o.id = due.id
    returning o.id, o.aggregatetype, o.aggregateid, o.aggregate_seq, o.type, o.payload::text, o.created_at, o.attempts
$$;

create or replace function mark_published(p_token uuid, p_ids uuid[]) returns setof uuid
    language sql security definer set search_path = failsafe, pg_temp
as $$
    update outbox set published_at = clock_timestamp(), claim_token = null, claim_until = null
    where id = any (p_ids) and claim_token = p_token and published_at is null and parked_at is null
    returning id
$$;

-- Nobody may claim it before the wait is over. What was not sent gets its attempt back.
create or replace function give_back_events(p_token uuid, p_ids uuid[], p_waits interval[], p_sent boolean[]) returns setof uuid
    language sql security definer set search_path = failsafe, pg_temp
as $$
    update outbox o
    set claim_token = null, claim_until = clock_timestamp() + w.wait,
        attempts = o.attempts - case when w.sent then 0 else 1 end
    from unnest(p_ids, p_waits, p_sent) as w (id, wait, sent)
    where o.id = w.id and o.claim_token = p_token and o.published_at is null and o.parked_at is null
    returning o.id
$$;

-- Skip an event for good, so that its aggregate goes on, and say so in the ledger.
create or replace function park_events(p_token uuid, p_ids uuid[], p_reasons text[]) returns setof uuid
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    parked uuid[];
begin
    with skipped as (
        update outbox o set parked_at = clock_timestamp(), claim_token = null, claim_until = null
        where o.id = any (p_ids) and o.claim_token = p_token and o.published_at is null and o.parked_at is null
        returning o.id
    )
    select array_agg(s.id) into parked from skipped s;
    perform write_audit(array_agg('system'::text), array_agg('outbox.parked'::text), array_agg(duty()),
        array_agg(json_bytes(json_build_object('event', o.id, 'aggregate', o.aggregatetype || ':' || o.aggregateid,
            'sequence', o.aggregate_seq, 'type', o.type, 'attempts', o.attempts, 'reason', left(w.reason, 500))) order by o.id))
    from unnest(p_ids, p_reasons) as w (id, reason) join outbox o on o.id = w.id
    where o.id = any (parked)
    having count(*) > 0;
    return query select unnest(parked);
end
$$;

-- Have parked events published after all. For each: what keeps it, or null. Those of its aggregate that came after it went
-- out meanwhile; where it belongs is said by its sequence.
create or replace function republish_events(p_session text, p_ids uuid[], p_reason text, p_dry_run boolean)
    returns table (event_id uuid, obstacle text)
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who principals := require_operator(p_session);
begin
    perform from outbox o where o.id = any (p_ids) order by o.id for update;
    return query
        select i, case when o.id is null then 'there is no such event'
            when o.published_at is not null then 'it is published'
            when o.parked_at is null then 'it is not parked: it is still tried' end
        from unnest(p_ids) with ordinality w (i, ord) left join outbox o on o.id = i order by w.ord;
    if p_dry_run then
        return;
    end if;
    perform write_operator_event(who, 'system', 'operator.republished', json_build_object('event', o.id,
        'aggregate', o.aggregatetype || ':' || o.aggregateid, 'sequence', o.aggregate_seq, 'reason', p_reason))
    from outbox o where o.id = any (p_ids) and o.parked_at is not null and o.published_at is null;
    update outbox o set parked_at = null, attempts = 0, claim_token = null, claim_until = null
    where o.id = any (p_ids) and o.parked_at is not null and o.published_at is null;
end
$$;
