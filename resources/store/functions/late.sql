-- What a provider told a worker that no longer holds the lease. It changes no request. Kept as evidence always; where it
-- contradicts what was settled meanwhile, the effect becomes late and a case is opened for a person.

create or replace function report_late(p_keys text[], p_states text[], p_references text[], p_errors text[]) returns void
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    report record;
    new_seq bigint;
begin
    perform from requests r where r.id in (select e.request_id from effects e where e.idempotency_key = any (p_keys))
        order by r.id for update;
    perform from effects e where e.idempotency_key = any (p_keys) order by e.idempotency_key for update;
    for report in
        select e.idempotency_key as key, e.request_id, e.action_type, e.provider, e.recovery, o.state as said, o.reference, o.error,
            o.state = 'done' and (e.state in ('fenced', 'refused') or e.state = 'intended' and r.closed_at is not null)
                as happened,
            o.state = 'refused' and e.state = 'done' and e.error like 'resolved by hand:%' as denied,
            case e.state when 'intended' then 'given up' else e.state end as held_for
        from unnest(p_keys, p_states, p_references, p_errors) as o (key, state, reference, error)
        join effects e on e.idempotency_key = o.key
        join requests r on r.id = e.request_id
        order by ('request:' || e.request_id) collate "C", e.idempotency_key -- the order in which audit heads are taken
    loop
        perform write_audit(array['request:' || report.request_id], array['effect.late_report'],
            array['provider:' || report.provider],
            array[json_bytes(json_build_object('key', report.key, 'said', report.said, 'reference', report.reference,
                'error', report.error))]);
        if report.happened then
            update effects set state = 'fenced' where idempotency_key = report.key and state = 'intended';
            update effects set state = 'late', outcome_at = clock_timestamp(),
                provider_reference = coalesce(report.reference, provider_reference)
            where idempotency_key = report.key;
            select w.event_seq into new_seq from write_audit(array['request:' || report.request_id], array['effect.late'],
                array['provider:' || report.provider],
                array[json_bytes(json_build_object('key', report.key, 'reference', report.reference))]) w;
            insert into outbox (aggregatetype, aggregateid, type, payload, aggregate_seq)
            values ('request', report.request_id, 'effect.late', json_build_object('key', report.key, 'action',
                report.action_type, 'reference', report.reference)::jsonb, new_seq);
            perform open_case(report.request_id, 'late', report.key || ' happened after it was ' || report.held_for || case
                when report.recovery ->> 'undo' is null then '; nothing undoes it'
                else '; ' || (report.recovery ->> 'undo') || ' undoes it (failsafe unknown undo)' end);
        elsif report.denied then
            perform open_case(report.request_id, 'late', report.key || ' was resolved by hand as done, but the provider refused it');
        end if;
    end loop;
end
$$;

-- A person wants a late effect undone. A run does it, under the undo's own key; the request stays as it is.
create or replace function ask_undo(p_session text, p_key text, p_reason text) returns uuid
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who    principals := require_operator(p_session);
    effect effects;
begin
    perform from requests r where r.id = (select e.request_id from effects e where e.idempotency_key = p_key) for update;
    select e.* into effect from effects e where e.idempotency_key = p_key for update;
    if effect.idempotency_key is null then
        raise exception 'there is no effect with this key' using errcode = 'FS404';
    elsif effect.state <> 'late' then
        raise exception 'the effect is %: only a late one is undone by itself', replace(effect.state, '_', ' ') using errcode = 'FS420';
    elsif effect.recovery ->> 'undo' is null then
        raise exception 'nothing undoes it: restore it by hand, and say so (failsafe unknown resolve --not-done)' using errcode = 'FS420';
    end if;
    update effects set undo_due_at = clock_timestamp(), undo_asked_by = who.id, undo_asked_at = clock_timestamp(), undo_attempts = 0
    where idempotency_key = p_key;
    perform write_operator_event(who, 'request:' || effect.request_id, 'operator.undo_asked',
        json_build_object('key', p_key, 'undo', effect.recovery ->> 'undo', 'reason', p_reason));
    return effect.request_id;
end
$$;

-- What became of the undo of a late effect: done, the effect is fenced and its case closed where nothing else is open;
-- to be tried again after a wait, because it failed or because it has to wait; or given up, and a person's again.
create or replace function settle_late_undo(p_token uuid, p_key text, p_outcome text, p_wait interval, p_why text) returns void
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    effect effects;
    who    principals;
begin
    perform from requests r where r.id = (select e.request_id from effects e where e.idempotency_key = p_key) for update;
    select e.* into effect from effects e join requests r on r.id = e.request_id
    where e.idempotency_key = p_key and e.state = 'late' and r.lease_token = p_token for update of e;
    if effect.idempotency_key is null then
        return; -- resolved by hand meanwhile, or the lease is lost
    elsif p_outcome in ('failed', 'wait') then
        update effects set undo_due_at = clock_timestamp() + p_wait,
            undo_attempts = undo_attempts + case p_outcome when 'failed' then 1 else 0 end
        where idempotency_key = p_key;
        return;
    elsif p_outcome = 'given_up' then
        update effects set undo_due_at = null where idempotency_key = p_key;
        perform open_case(effect.request_id, 'late', p_key || ' was not undone: ' || p_why);
        return;
    elsif not exists (select from effects u where u.request_id = effect.request_id and u.kind = 'compensation'
        and u.ordinal = effect.ordinal and u.intent = effect.intent and u.state = 'done') then
        raise exception 'its undo is not done' using errcode = 'FS002';
    end if;
    update effects set state = 'fenced', undo_due_at = null, outcome_at = clock_timestamp(), error = 'undone' where idempotency_key = p_key;
    perform write_audit(array['request:' || effect.request_id], array['effect.late_undone'], array[duty()],
        array[json_bytes(json_build_object('key', p_key))]);
    if exists (select from requests r where r.id = effect.request_id and r.closed_at is not null)
        and not exists (select from effects e where e.request_id = effect.request_id and e.state in ('late', 'unknown')) then
        select * into who from principals where id = effect.undo_asked_by;
        perform close_cases(who, array[effect.request_id], 'undone: ' || p_key);
    end if;
end
$$;
