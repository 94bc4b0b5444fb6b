-- Which of these claims another request holds.
select c.id, c.kind
from unnest(cast(:kinds as text[]), cast(:hashes as bytea[]), cast(:ids as uuid[])) as c (kind, value_hash, id)
join claims held on held.workflow = :workflow and held.kind = c.kind and held.value_hash = c.value_hash
where held.request_id <> c.id
