-- Limits and breaker of a provider, one row for all processes. A clock that is set back takes nothing away. Closed: calls pass. Open: nothing passes until open_until.
-- Half-open: one probe, cluster-wide; its answer closes the breaker or opens it for longer.

do $$ begin
    create type provider_gate as (allowed bigint, because text, wait_seconds double precision, retries bigint, probing boolean);
exception when duplicate_object then null;
end $$;

-- How many starts the provider takes now, and why not more. Locks its row until the starts are written.
create or replace function look_at_gate(p_provider text) returns provider_gate
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    it      providers;
    instant timestamptz;
    gate    provider_gate := (9223372036854775807, 'provider_busy', 1.0, 9223372036854775807, false);
    busy    bigint;
begin
    select * into it from providers where name = p_provider for update;
    if not found then
        return gate;
    end if;
    instant := clock_timestamp();
    if it.retry_credit < 20 then
        -- One a second, whatever else happens: what waits for it must go out even where no new work comes.
        update providers set credited_at = instant,
            retry_credit = least(20, retry_credit + greatest(0, extract(epoch from instant - credited_at)))
        where name = p_provider returning * into it;
    end if;
    gate.retries := floor(it.retry_credit);
    if it.open_until > instant then
        return (0, 'breaker_open', extract(epoch from it.open_until - instant), 0, false)::provider_gate;
    elsif it.open_until is not null and it.probe_until > instant then
        return (0, 'breaker_open', extract(epoch from it.probe_until - instant), 0, false)::provider_gate;
    elsif it.open_until is not null then
        -- The probe is worth a call even where the credit for repeated ones is used up.
        return (1, 'breaker_open', 5.0, 1, true)::provider_gate;
    end if;
    if it.max_in_flight is not null then
        select count(*) into busy from effects e where e.provider = p_provider and e.state = 'in_flight';
        gate.allowed := greatest(it.max_in_flight - busy, 0);
    end if;
    if it.per_second is not null then
        update providers set refilled_at = instant,
            tokens = least(greatest(per_second, 1), tokens + per_second * greatest(0, extract(epoch from instant - refilled_at)))
        where name = p_provider returning * into it;
        gate.allowed := least(gate.allowed, floor(it.tokens)::bigint);
        gate.wait_seconds := greatest((1 - it.tokens) / it.per_second, 0.1);
    end if;
    return gate;
end
$$;

-- A provider in trouble is not buried under repetitions: a repeated call takes a credit. Every ten first calls earn one, a
-- second that passes with fewer than twenty earns one, and a repeated call that is answered earns two (`note_answers`).
create or replace function take_permits(p_provider text, p_starts bigint, p_repeated bigint, p_probing boolean) returns void
    language sql security definer set search_path = failsafe, pg_temp
as $$
    update providers set
        tokens = case when per_second is null then tokens else tokens - p_starts end,
        retry_credit = greatest(0, least(greatest(retry_credit, 100), retry_credit + 0.1 * (p_starts - p_repeated)) - p_repeated),
        credited_at = case when retry_credit < 20 then credited_at else clock_timestamp() end,
        probe_until = case when p_probing then clock_timestamp() + interval '60 seconds' else probe_until end
    where name = p_provider
      and (per_second is not null or p_repeated > 0 or p_probing or retry_credit < 100)
$$;

-- What the answers say about the provider. Five transport failures in a row open the breaker, for 10 s doubling to 5 min.
-- Of those answered, some were repeated: what waits after an outage goes out ever faster while the provider answers.
create or replace function note_answers(p_provider text, p_answered bigint, p_repeated bigint, p_failed bigint) returns void
    language sql security definer set search_path = failsafe, pg_temp
as $$
    update providers set
        consecutive_failures = case when p_answered > 0 then 0 else consecutive_failures + p_failed end,
        opens = case when p_answered > 0 then 0
            when open_until is not null or consecutive_failures + p_failed >= 5 then least(opens + 1, 10) else opens end,
        open_until = case when p_answered > 0 then null
            when open_until is not null or consecutive_failures + p_failed >= 5
                then clock_timestamp() + least(interval '5 minutes', interval '10 seconds' * power(2, opens)) end,
        probe_until = null,
        retry_credit = greatest(retry_credit, least(500, retry_credit + 2 * p_repeated))
    where name = p_provider and (p_failed > 0 or consecutive_failures > 0 or open_until is not null or p_repeated > 0)
      and p_answered + p_failed > 0
$$;

-- A provider as its adapters declare it; limits may change with the code.
create or replace function register_provider(p_name text, p_max_in_flight integer, p_per_second real) returns void
    language sql security definer set search_path = failsafe, pg_temp
as $$
    insert into providers (name, max_in_flight, per_second) values (p_name, p_max_in_flight, p_per_second)
    on conflict (name) do update set max_in_flight = excluded.max_in_flight, per_second = excluded.per_second
        where (providers.max_in_flight, providers.per_second) is distinct from (excluded.max_in_flight, excluded.per_second)
$$;
