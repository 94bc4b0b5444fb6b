-- Whom the actors of events are called, as far as they are principals.
select 'principal:' || id as actor, name from principals where 'principal:' || id = any (:actors)
