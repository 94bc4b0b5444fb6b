-- Findings of proposals that still stand as they were read; a request that moved on meanwhile is left out.
with standing as materialized (
    select r.id, r.revision, r.round, f.verdict, f.items, f.weakest_trust, f.parties
    from unnest(cast(:ids as uuid[]), cast(:revisions as integer[]), cast(:rounds as integer[]), cast(:verdicts as text[]),
        cast(:items as text[]), cast(:trusts as text[]), cast(:parties as text[])) as f (id, revision, round, verdict, items, weakest_trust, parties)
    join requests r on r.id = f.id and r.revision = f.revision and r.round = f.round and r.state = 'proposal_ready'
    order by r.id
    for update of r skip locked
)
insert into findings (request_id, revision, round, verdict, items, weakest_trust, parties)
select id, revision, round, verdict, cast(items as json), weakest_trust,
    array(select json_array_elements_text(cast(parties as json)))
from standing
on conflict do nothing
returning request_id
