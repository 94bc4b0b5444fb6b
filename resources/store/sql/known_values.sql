-- Which of these values a completed request of the workflow has used before.
select v.id, v.path, v.value_hash
from unnest(cast(:ids as uuid[]), cast(:paths as text[]), cast(:hashes as bytea[])) as v (id, path, value_hash)
join known_values known on known.workflow = :workflow and known.path = v.path and known.value_hash = v.value_hash
