-- How many aggregates have an event that may be published now (counted up to a bound), and how long the oldest waits.
select count(*) as events, extract(epoch from clock_timestamp() - min(created_at))::float8 as seconds
from (select created_at from outbox_due order by created_at limit 1000) due
