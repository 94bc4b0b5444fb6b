-- The policy in force and the preconditions still agree; start_effects takes this for 30 seconds after they were read.
update requests set rechecked_until = clock_timestamp() + interval '30 seconds' - make_interval(secs => :age)
where id = any (cast(:ids as uuid[])) and lease_token = :token
returning id
