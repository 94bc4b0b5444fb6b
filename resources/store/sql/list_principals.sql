-- Everyone who may act or could once.
select id, kind, name, external_id, roles, limits, created_at, disabled_at from principals order by name
