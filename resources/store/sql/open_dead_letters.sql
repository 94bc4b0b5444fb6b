-- Park with a record of why.
insert into dead_letters (request_id, step, failure, trace_id)
select d.id, d.step, d.failure, r.trace_id
from unnest(cast(:ids as uuid[]), cast(:steps as text[]), cast(:failures as text[])) as d (id, step, failure)
join requests r on r.id = d.id
on conflict (request_id) where closed_at is null do nothing
