-- Take a request, ended or not, that has a late effect whose undo is due.
with due as materialized (
    select r.id from requests r
    where r.id in (select e.request_id from effects e where e.state = 'late' and e.undo_due_at <= clock_timestamp())
      and r.workflow = :workflow and r.batch_key = :batch and r.lease_token is null
    order by r.id
    limit 1
    for update skip locked
)
update requests r set lease_token = :token, lease_until = clock_timestamp() + :lease, lease_alone = false
from due where r.id = due.id and r.lease_token is null
returning r.id
