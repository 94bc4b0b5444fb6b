-- For each event: what keeps it from being published after all, or null. A dry run changes nothing.
select event_id, obstacle from republish_events(:session, cast(:ids as uuid[]), :reason, :dry_run)
