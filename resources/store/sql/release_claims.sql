-- A refused request holds no claim.
delete from claims where request_id = any (cast(:ids as uuid[]))
