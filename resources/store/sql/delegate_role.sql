-- Lend a role; without a beginning, from now on.
select delegate_role(:session, :to, :role, coalesce(cast(:starting as timestamptz), clock_timestamp()), :until, :reason)
