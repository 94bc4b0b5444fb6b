-- Every effect was first sent a month ago.
update effects e set first_sent_at = e.first_sent_at - interval '31 d'
from requests r
where r.id = e.request_id and r.workflow = :workflow
