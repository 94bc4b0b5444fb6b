-- No call is under way any more: as an hour later.
update effects e set started_at = e.started_at - interval '1 h'
from requests r
where r.id = e.request_id and r.workflow = :workflow and e.state in ('in_flight', 'unknown')
