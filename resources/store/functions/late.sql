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
                else '; ' || (report.recovery ->> 'undo') || ' undoes it' end);
        elsif report.denied then
            perform open_case(report.request_id, 'late', report.key || ' was resolved by hand as done, but the provider refused it');
        end if;
    end loop;
end
$$;
