-- Every name that a pause may have, by its scope.
select 'everything' as scope, '*' as name
union select 'workflow', name from workflows
union select 'action_type', action_type from action_types
union select 'provider', provider from action_types
order by scope, name
