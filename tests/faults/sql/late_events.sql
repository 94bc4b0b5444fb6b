-- How often a provider told of an effect to somebody who no longer held it.
select count(*) as late
from audit_events e join requests r on e.stream = 'request:' || r.id
where r.workflow = :workflow and e.type in ('effect.late', 'effect.late_report')
