-- All that is known of one request: as received, what was added to it since, what the model said of it, how that was judged, what was done.
select r.request_id, r.workflow, r.workflow_version, r.operation_id, r.initiator, r.subject, r.batch_key, r.state, r.reason,
    r.attempts, r.received_at, r.closed_at,
    case when q.supplied then supplied_payload(q.id) else q.payload end as payload, p.kind, p.output, p.model, p.prompt_version, encode(p.hash, 'hex') as proposal_hash,
    f.verdict, f.items as findings, a.tier, a.decision, a.mode, a.reasons, a.policy_version,
    (select json_agg(json_build_object('key', e.idempotency_key, 'action', e.action_type, 'kind', e.kind, 'provider', e.provider,
        'state', e.state, 'attempts', e.attempts, 'reference', e.provider_reference, 'error', e.error) order by e.started_at, e.ordinal)
        from effects e where e.request_id = r.request_id) as effects,
    case when q.supplied then (
        select json_agg(json_build_object('revision', i.revision, 'fields', i.fields, 'by', x.name, 'at', i.supplied_at) order by i.revision)
        from request_inputs i join principals x on x.id = i.supplied_by where i.request_id = q.id) end as inputs
from requests_v r
join requests q on q.id = r.request_id
left join proposals p on p.request_id = r.request_id and p.revision = r.revision
left join findings f on f.request_id = r.request_id and f.revision = r.revision and f.round = r.round
left join assessments a on a.request_id = r.request_id and a.revision = r.revision and a.round = r.round
where r.request_id = :request_id
