-- Keep what the model said, with its canonical form where it has one. A revision is written once.
insert into proposals (request_id, revision, kind, output, canonical, hash, model, prompt_version)
select * from unnest(cast(:ids as uuid[]), cast(:revisions as integer[]), cast(:kinds as text[]), cast(:outputs as bytea[]),
    cast(:canonicals as bytea[]), cast(:hashes as bytea[]), cast(:models as text[]), cast(:prompt_versions as text[]))
