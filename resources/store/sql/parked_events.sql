-- Events that were given up, oldest first, with why: the ledger says it.
select o.id, o.aggregatetype || ':' || o.aggregateid as aggregate, o.aggregate_seq as sequence, o.type, o.attempts, o.created_at,
    o.parked_at, (
        select cast(a.payload as json) ->> 'reason' from audit_v a
        where a.stream = 'system' and a.type = 'outbox.parked' and cast(a.payload as json) ->> 'event' = cast(o.id as text)
        order by a.seq desc limit 1
    ) as reason
from outbox o
where o.parked_at is not null and o.published_at is null
  and (cast(:type as text) is null or o.type = :type)
order by o.parked_at, o.id
