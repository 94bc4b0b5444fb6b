-- Every event of these streams, each stream in the order of its chain.
select stream, seq, type, at, role, actor, payload, hash
from audit_events
where stream = any (:streams)
order by stream, seq
