-- For each request: what kept it from being given up, or null, and what it leaves done. A dry run changes nothing.
select request_id, obstacle, left_done from discard_requests(:session, cast(:ids as uuid[]), :reason, :dry_run)
