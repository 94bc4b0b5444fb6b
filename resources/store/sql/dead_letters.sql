-- Cases for a person, oldest first: open ones, and closed ones where asked for.
select d.request_id, r.workflow, r.batch_key, r.operation_id, r.state, d.step, d.failure, d.trace_id, d.opened_at, d.closed_at,
    who.name as closed_by, d.resolution
from dead_letters d
join requests r on r.id = d.request_id
left join principals who on who.id = d.closed_by
where (:closed or d.closed_at is null)
  and (cast(:request_id as uuid) is null or d.request_id = :request_id)
  and (cast(:workflow as text) is null or r.workflow = :workflow)
  and (cast(:batch as text) is null or r.batch_key = :batch)
  and (cast(:failure as text) is null or strpos(d.failure, :failure) > 0)
order by d.opened_at, d.id
