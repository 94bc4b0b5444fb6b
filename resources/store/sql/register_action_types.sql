-- The catalogue of a workflow as its code declares it now; written only where it differs, since every step asks.
with declared as materialized (
    select * from unnest(cast(:types as text[]), cast(:providers as text[])) as d (action_type, provider)
), gone as (
    delete from action_types a where a.workflow = :workflow and a.action_type not in (select action_type from declared)
)
insert into action_types (workflow, action_type, provider)
select :workflow, d.action_type, d.provider from declared d
where not exists (select from action_types a where a.workflow = :workflow and a.action_type = d.action_type and a.provider = d.provider)
on conflict (workflow, action_type) do update set provider = excluded.provider
