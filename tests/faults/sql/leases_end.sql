-- Every lease has run out.
update requests set lease_until = clock_timestamp() - interval '1 ms' where workflow = :workflow and lease_token is not null
