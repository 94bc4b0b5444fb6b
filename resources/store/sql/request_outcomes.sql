-- Where requests stand, each with its effects in the order of their actions.
select r.request_id, r.state, r.reason, r.tier, r.decision, coalesce((
    select json_agg(json_build_object('action_type', e.action_type, 'state', e.state, 'reference', e.provider_reference)
        order by e.ordinal, e.kind desc, e.intent)
    from effects e where e.request_id = r.request_id), '[]') as effects
from requests_v r
where r.request_id = any (:ids)
