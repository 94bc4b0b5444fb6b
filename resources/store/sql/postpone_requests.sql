-- Wait before the next try: the attempt is counted where it was one, the lease given back.
update requests r
set attempts = r.attempts + p.attempts, next_eligible_at = clock_timestamp() + p.delay,
    -- Why a request is being undone must outlast its waits.
    reason = case r.state when 'compensating' then left(split_part(r.reason, '; waits: ', 1) || '; waits: ' || p.reason, 500)
        else p.reason end,
    lease_token = null, lease_until = null, lease_alone = false
from unnest(cast(:ids as uuid[]), cast(:attempts as integer[]), cast(:delays as interval[]), cast(:reasons as text[]))
    as p (id, attempts, delay, reason)
where r.id = p.id and r.lease_token = :token
returning r.id
