-- Where the store contradicts itself although nobody works any more, each with what is wrong.
with told as (
    select e.stream, e.type, convert_from(e.payload, 'UTF8')::json as payload
    from audit_events e join requests r on e.stream = 'request:' || r.id
    where r.workflow = :workflow
), wrong as (
    select r.*, case
        when r.lease_token is not null then 'is leased although nobody works'
        when exists (select from effects e where e.request_id = r.id and e.state = 'in_flight')
            then 'has an effect in flight although nobody works'
        when exists (select from effects e where e.request_id = r.id and e.state = 'unknown')
            and not exists (select from dead_letters d where d.request_id = r.id and d.closed_at is null)
            then 'has an unknown effect that waits for nobody'
        when r.closed_at is not null and exists (select from claims c where c.request_id = r.id)
            and not exists (select from effects e where e.request_id = r.id and e.state in ('done', 'late'))
            then 'ended with a claim but without an effect'
        when r.state_seq - 1 > (select count(*) from told t where t.stream = 'request:' || r.id and t.payload ->> 'state' is not null)
            then 'was moved more often than its ledger tells'
        when exists (
            select from effects e where e.request_id = r.id and e.state in ('done', 'refused') and not exists (
                select from told t where t.stream = 'request:' || r.id and t.payload ->> 'key' = e.idempotency_key
                    and t.type in ('effect.' || e.state, 'operator.resolved_unknown')))
            then 'has an outcome that its ledger does not tell'
    end as what
    from requests r
    where r.workflow = :workflow
)
select operation_id, state, what from wrong where what is not null
