-- Every request of a schedule as it was left: its end, whether a case is open, and what the store says of its effects.
select r.operation_id, r.state, r.reason,
    exists (select from dead_letters d where d.request_id = r.id and d.closed_at is null) as open_case,
    (
        select json_agg(json_build_object('type', e.action_type, 'state', e.state, 'assumed', e.result ->> 'assumed') order by e.intent)
        from effects e where e.request_id = r.id
    ) as effects
from requests r
where r.workflow = :workflow
