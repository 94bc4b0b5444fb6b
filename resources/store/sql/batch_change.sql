-- What a batch's report is made from: the sum of state changes shows any later one.
select coalesce(sum(state_seq), 0) as seq, count(*) as requests,
    count(*) filter (where state = any (:open_states)) as open,
    count(*) filter (where state = any (:parked_states)) as parked
from requests
where workflow = :workflow and batch_key = :batch
