-- A parked request with all that a person needs: what was received, what was done, where its story is told.
select r.id as request_id, r.workflow, r.workflow_version, r.batch_key, r.operation_id, r.state, r.reason, r.trace_id,
    'request:' || r.id as ledger_stream,
    case when r.supplied then supplied_payload(r.id) else r.payload end as payload, r.supplied, coalesce((
        select json_agg(json_build_object('key', e.idempotency_key, 'action', e.action_type, 'kind', e.kind, 'provider', e.provider,
            'state', e.state, 'attempts', e.attempts, 'first_sent_at', e.first_sent_at, 'parameters', parameters_of(e), 'reference', e.provider_reference,
            'error', e.error, 'recovery', e.recovery) order by e.ordinal, e.intent, e.kind desc)
        from effects e where e.request_id = r.id), '[]') as effects
from requests r
where r.id = :request_id
