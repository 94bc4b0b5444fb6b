-- Claim facts that may be true of one request only; the unique key decides who was first.
insert into claims (workflow, kind, value_hash, request_id)
select :workflow, c.kind, c.value_hash, c.id
from unnest(cast(:kinds as text[]), cast(:hashes as bytea[]), cast(:ids as uuid[])) as c (kind, value_hash, id)
order by c.kind, c.value_hash, c.id -- one order for everyone
on conflict do nothing
