-- The loans of roles that the holder of this session gave or got; an operator sees all.
select id, role, giver, grantee, starts_at, ends_at, reason, revoked_at, in_force from list_delegations(:session)
