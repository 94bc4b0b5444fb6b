-- Pauses in force, each with what it holds back now and what is in flight beside it.
select p.scope, p.name, p.paused_at, who.name as paused_by, p.reason, reach.held_back, reach.in_flight
from pauses p
join principals who on who.id = p.paused_by
cross join lateral pause_reach(p.scope, p.name) reach
order by p.paused_at, p.scope, p.name
