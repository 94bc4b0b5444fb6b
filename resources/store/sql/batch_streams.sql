-- One page of a batch's requests in id order, each with the head of its own chain.
select r.id, h.seq, h.hash
from requests r
left join audit_heads h on h.stream = 'request:' || r.id
where r.workflow = :workflow and r.batch_key = :batch and r.id > :after
order by r.id
limit :limit
