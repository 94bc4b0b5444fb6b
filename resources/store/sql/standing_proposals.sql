-- Proposals that exist already for the revision wanted: a rerun or a redrive never asks the model again.
select p.request_id, p.kind, p.hash
from proposals p
join unnest(cast(:ids as uuid[]), cast(:revisions as integer[])) as w (id, revision) on p.request_id = w.id and p.revision = w.revision
