-- Under which keys the claimed requests of before a restore may have done something, by the proposal that stands: each
-- action's, its undo's. And what would contradict going on: a new try of what was not settled, which a person may have
-- asked for since; and what another proposal may have done first, since any could be replaced by supplying input.
select r.id as request_id, k.ordinal, k.kind, k.action_type, k.key, k.of_another, p.created_at >= e.opened_at as proposed_since,
    -- What was not judged before may easily have been another proposal: enough to call a person where no provider can tell.
    -- Once an effect was begun no other proposal begins any.
    not exists (select from assessments j where j.request_id = r.id and j.revision = r.revision and j.created_at < e.opened_at)
        and not exists (select from effects f where f.request_id = r.id) as replaceable,
    -- A person said since that it was not done, so nothing after it was begun.
    exists (select from effects f where f.request_id = r.id and f.ordinal = k.ordinal and f.kind = 'forward' and f.state = 'fenced'
        and f.outcome_at >= e.opened_at) as given_up,
    clock_timestamp() - r.received_at as since_received, clock_timestamp() - e.opened_at as since_restored
from requests r
join epochs e on e.number = (select epoch_in_force())
join proposals p on p.request_id = r.id and p.revision = r.revision and p.kind = 'proposal'
cross join lateral (
    select a.ordinal::integer as ordinal, d.kind, x.type as action_type,
        effect_key(r.workflow, r.id, x.action_id, intended_as(r.id, a.ordinal::integer, d.kind, r.round), d.kind) as key,
        false as of_another
    from json_array_elements(convert_from(p.canonical, 'UTF8')::json -> 'actions') with ordinality a (document, ordinal)
    cross join lateral json_to_record(a.document) as x (action_id text, type text)
    cross join unnest(array['forward', 'compensation']) d (kind)
    union all
    select a.ordinal::integer, 'forward', x.type, effect_key(r.workflow, r.id, x.action_id,
        intended_as(r.id, a.ordinal::integer, 'forward', r.round) + 1, 'forward'), true
    from json_array_elements(convert_from(p.canonical, 'UTF8')::json -> 'actions') with ordinality a (document, ordinal)
    cross join lateral json_to_record(a.document) as x (action_id text, type text)
    where exists (select from effects f where f.request_id = r.id and f.ordinal = a.ordinal and f.kind = 'forward'
        and f.state in ('unknown', 'intended'))
    union all
    select 1, 'forward', t, effect_key(r.workflow, r.id, '1:' || t, 1, 'forward'), true
    from unnest(cast(:proposable as text[])) t
    where t <> convert_from(p.canonical, 'UTF8')::json #>> '{actions,0,type}'
) k
where r.id = any (cast(:ids as uuid[])) and r.lease_token = :token
order by r.id, k.of_another desc, k.ordinal, k.kind
