-- Keep what is still ours for another lease; what is not returned is lost.
update requests set lease_until = clock_timestamp() + :lease
where id = any (cast(:ids as uuid[])) and lease_token = :token
returning id
