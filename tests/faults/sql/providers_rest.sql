-- Breakers let a probe through, and an hour's credit for repeated calls is there.
update providers
set open_until = case when open_until is not null then least(open_until, clock_timestamp()) end, probe_until = null,
    credited_at = credited_at - interval '1 h'
