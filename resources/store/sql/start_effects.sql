-- The only way to in_flight; returns for each what refused it, or null.
select started_request, started_ordinal, key, refusal, wait_seconds
from start_effects(:token, :provider, cast(:ids as uuid[]), cast(:ordinals as integer[]), cast(:kinds as text[]),
    cast(:parameters_hashes as bytea[]), cast(cast(:recoveries as text[]) as json[]),
    cast(:intents as integer[]))
