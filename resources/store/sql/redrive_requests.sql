-- For each request: what kept it from being redriven, or null, and what it has done. A dry run changes nothing.
select request_id, obstacle, left_done from redrive_requests(:session, cast(:ids as uuid[]), :reason, :dry_run)
