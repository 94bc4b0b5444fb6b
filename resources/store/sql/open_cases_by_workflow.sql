-- Open dead letters of each workflow.
select r.workflow, count(*) as cases from dead_letters d join requests r on r.id = d.request_id
where d.closed_at is null and (cast(:workflow as text) is null or r.workflow = :workflow)
group by r.workflow
