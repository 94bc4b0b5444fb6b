-- Actions whose effect happened more often than it was undone and once more.
select e.idempotency_key
from effects e
join requests r on r.id = e.request_id
where r.workflow = :workflow and r.batch_key = :batch and e.kind = 'forward' and e.state in ('done', 'late')
  and (
    select count(*) filter (where f.kind = 'forward') - count(*) filter (where f.kind = 'compensation')
    from effects f
    where f.request_id = e.request_id and f.action_id = e.action_id and f.state in ('done', 'late')
  ) > 1
order by e.idempotency_key
limit :limit
