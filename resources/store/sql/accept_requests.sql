-- Store a chunk of requests and say, in the order given, which were accepted, which were in already and which conflict.
select outcome, request_id, request_batch_key as batch_key, request_received_at as received_at
from accept_requests(:token, :workflow, :version, :tenant, '{}', cast(:operation_ids as text[]), cast(:subjects as text[]),
    cast(:payloads as bytea[]), cast(:fingerprints as bytea[]))
order by ordinal
