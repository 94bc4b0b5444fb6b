-- Findings of outputs that never became a proposal.
insert into findings (request_id, revision, round, verdict, items, weakest_trust, parties)
select f.id, f.revision, f.round, f.verdict, cast(f.items as json), f.weakest_trust,
    array(select json_array_elements_text(cast(f.parties as json)))
from unnest(cast(:ids as uuid[]), cast(:revisions as integer[]), cast(:rounds as integer[]), cast(:verdicts as text[]),
    cast(:items as text[]), cast(:trusts as text[]), cast(:parties as text[])) as f (id, revision, round, verdict, items, weakest_trust, parties)
on conflict do nothing
returning request_id
