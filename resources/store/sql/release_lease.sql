-- Give work back that needs no more of it in this step.
update requests set lease_token = null, lease_until = null, lease_alone = false
where id = any (cast(:ids as uuid[])) and lease_token = :token
