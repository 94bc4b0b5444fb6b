-- One assessment a proposal and round.
insert into assessments (request_id, revision, round, tier, decision, mode, reasons, demand, snapshots, policy_version, policy_hash)
select a.id, a.revision, a.round, a.tier, a.decision, a.mode, cast(a.reasons as json), cast(a.demand as json), cast(a.snapshots as json),
    :policy_version, :policy_hash
from unnest(cast(:ids as uuid[]), cast(:revisions as integer[]), cast(:rounds as integer[]), cast(:tiers as text[]),
    cast(:decisions as text[]), cast(:modes as text[]), cast(:reasons as text[]), cast(:demands as text[]), cast(:snapshots as text[]))
    as a (id, revision, round, tier, decision, mode, reasons, demand, snapshots)
