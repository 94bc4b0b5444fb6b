-- Wait before the next try: the attempt is counted where it was one, the lease, if there is one, given back. The first attempt sets the
-- deadline; one that would be followed by another only after it is not put off, and not returned.
update requests r
set attempts = r.attempts + p.attempt, next_eligible_at = clock_timestamp() + p.delay,
    retry_until = case when p.attempt > 0 then coalesce(r.retry_until, clock_timestamp() + :retry_for) else r.retry_until end,
    -- Why a request is being undone must outlast its waits.
    reason = case r.state when 'compensating' then left(split_part(r.reason, '; waits: ', 1) || '; waits: ' || p.reason, 500)
        else p.reason end,
    lease_token = null, lease_until = null, lease_alone = false
from unnest(cast(:ids as uuid[]), cast(:attempts as integer[]), cast(:delays as interval[]), cast(:reasons as text[]),
    cast(:bounded as boolean[]))
    as p (id, attempt, delay, reason, bounded)
where r.id = p.id
  and coalesce(r.lease_token, '00000000-0000-0000-0000-000000000000') = coalesce(cast(:token as uuid), '00000000-0000-0000-0000-000000000000')
  and (not p.bounded or clock_timestamp() + p.delay <= coalesce(r.retry_until, clock_timestamp() + :retry_for))
returning r.id
