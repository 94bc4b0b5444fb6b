-- Take the next event of each aggregate that has one to publish, the oldest first.
select id, aggregatetype, aggregateid, aggregate_seq, type, payload, created_at, attempts
from claim_events(:token, :limit, :length)
