-- Keep what is still ours for another lease; what is not returned is lost. Locked in the order of everyone, since outcomes
-- of the same lease may be recorded meanwhile.
with ours as (
    select id from requests where id = any (cast(:ids as uuid[])) and lease_token = :token order by id for update
)
update requests r set lease_until = clock_timestamp() + :lease from ours where r.id = ours.id returning r.id
