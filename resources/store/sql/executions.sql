-- What the claimed requests would execute: the sealed proposal, its judgement, and how far its effects are.
select r.id, r.workflow_version, r.revision, r.round, r.state, r.reason, r.attempts,
    case when r.supplied then supplied_payload(r.id) else r.payload end as payload,
    case when r.supplied then supplied_by_another(r.id, r.initiator) else false end as supplied_by_another,
    r.cancel_requested_at is not null as cancel_requested,
    coalesce(r.rechecked_until > clock_timestamp() + interval '10 seconds', false) as rechecked,
    p.canonical, p.edited_by is not null as edited, a.decision, a.demand, a.snapshots, a.policy_version, who.roles, who.disabled_at is not null as disabled,
    (
        -- What an earlier round found refused or fenced, a redrive may do anew: it counts as not begun.
        -- The last one counts, but what happened counts before what is only intended.
        select json_agg(json_build_array(e.ordinal, e.kind, e.state, e.provider_reference, e.state = 'intended' and e.result is not null)
            order by e.state in ('done', 'late'), e.intent)
        from effects e
        where e.request_id = r.id and not (e.round < r.round and e.state in ('refused', 'fenced'))
          and (e.kind = 'forward' or e.intent = (select max(f.intent) from effects f
              where f.request_id = e.request_id and f.ordinal = e.ordinal and f.kind = 'forward'))
    ) as effects
from requests r
join principals who on who.id = r.initiator
join proposals p on p.request_id = r.id and p.revision = r.revision and p.kind = 'proposal'
left join assessments a on a.request_id = r.id and a.revision = r.revision and a.round = r.round
where r.id = any (cast(:ids as uuid[])) and r.lease_token = :token
order by r.id
