-- All that is known of one request: as received, what the model said of it, how that was judged, what was done.
select r.request_id, r.workflow, r.workflow_version, r.operation_id, r.initiator, r.subject, r.batch_key, r.state, r.reason,
    r.attempts, r.received_at, r.closed_at, q.payload, p.kind, p.output, p.model, p.prompt_version, encode(p.hash, 'hex') as proposal_hash,
    f.verdict, f.items as findings, a.tier, a.decision, a.mode, a.reasons, a.policy_version,
    (select json_agg(json_build_object('key', e.idempotency_key, 'action', e.action_type, 'kind', e.kind, 'provider', e.provider,
        'state', e.state, 'attempts', e.attempts, 'reference', e.provider_reference, 'error', e.error) order by e.started_at, e.ordinal)
        from effects e where e.request_id = r.request_id) as effects
from requests_v r
join requests q on q.id = r.request_id
left join proposals p on p.request_id = r.request_id and p.revision = r.revision
left join findings f on f.request_id = r.request_id and f.revision = r.revision and f.round = r.round
left join assessments a on a.request_id = r.request_id and a.revision = r.revision and a.round = r.round
where r.request_id = :request_id
