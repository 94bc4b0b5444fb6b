-- Breakers let a probe through, and repeated calls have their credit.
update providers
set open_until = least(open_until, clock_timestamp()), probe_until = null, retry_credit = greatest(retry_credit, 20)
