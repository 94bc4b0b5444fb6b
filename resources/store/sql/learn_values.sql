-- Remember the values of completed requests.
insert into known_values (workflow, path, value_hash)
select distinct :workflow, v.path, v.value_hash
from unnest(cast(:paths as text[]), cast(:hashes as bytea[])) as v (path, value_hash)
order by 2, 3
on conflict do nothing
