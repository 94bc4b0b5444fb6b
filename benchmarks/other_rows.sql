-- The workflow as its first request would register it.
insert into workflows (name, batch_kind, batch_zone, since) values (%(workflow)s, 'day', 'UTC', '2026-01-01');

-- Requests that a measurement does not touch: all due in other batches, with the ledger's head and first event of each.
with made as (
    insert into requests (id, workflow, workflow_version, operation_id, initiator, authorization_context, payload,
        payload_fingerprint, batch_key, next_eligible_at, trace_id, received_at)
    select new_id(), %(workflow)s, '1', 'other-' || n, p.id, '{"roles":["clerk"]}',
        convert_to('{"order":"other","amount":"12.50 EUR"}', 'UTF8'), sha256(n::text::bytea),
        to_char(date '2025-01-01' + n %% 200, 'YYYY-MM-DD'), clock_timestamp(), md5(n::text), clock_timestamp()
    from generate_series(1, %(others)s) n, (select id from principals limit 1) p
    returning id
), headed as (
    insert into audit_heads (stream, seq, hash) select 'request:' || id, 1, sha256('') from made
)
insert into audit_events (stream, seq, type, at, role, actor, payload, hash)
select 'request:' || id, 1, 'request.received', utc_text(clock_timestamp()), 'benchmark', 'benchmark', '{}', sha256('') from made;

-- Half of them have ended, an effect done; every row was changed once or twice, which leaves its dead versions.
update requests set attempts = 1 where operation_id like 'other-%%';

with ended as (
    update requests set state = 'cancelled', last_event = 'cancelled', state_seq = 2, closed_at = clock_timestamp()
    where operation_id like 'other-%%' and right(operation_id, 1) in ('0', '2', '4', '6', '8')
    returning id
), proposed as (
    insert into proposals (request_id, revision, kind, output, canonical, hash, model, prompt_version)
    select id, 1, 'proposal', '', '', sha256(id::text::bytea), '', '' from ended
)
insert into effects (idempotency_key, request_id, revision, action_id, action_type, ordinal, intent, round, kind, provider,
    proposal_hash, parameters_hash, recovery, state, first_sent_at, started_at, outcome_at)
select 'other:' || id, id, 1, '1:order.pay', 'order.pay', 1, 1, 1, 'forward', 'Instant',
    sha256(''), sha256(''), '{}', 'done', clock_timestamp(), clock_timestamp(), clock_timestamp()
from ended;
