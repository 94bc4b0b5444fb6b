-- What the outbox holds, in its order.
select id, aggregateid, aggregate_seq, published_at from outbox order by aggregate_seq
