-- What may have been done before a restore becomes an effect of unknown outcome.
select suspect_effects(:token, cast(:ids as uuid[]), cast(:ordinals as integer[]), cast(:kinds as text[]), cast(:providers as text[]),
    cast(:parameters_hashes as bytea[]), cast(cast(:recoveries as text[]) as json[]))
