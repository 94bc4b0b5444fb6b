-- Everything that waits is due.
update requests set next_eligible_at = received_at where workflow = :workflow and closed_at is null
