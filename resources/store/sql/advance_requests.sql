-- Move requests one transition on, if they still stand where the decision saw them and the lease is still ours (or nobody's).
update requests r
set state = m.to_state, last_event = m.event, state_seq = r.state_seq + 1, reason = m.reason,
    round = r.round + m.rounds, revision = r.revision + m.revisions,
    approval_id = case when m.rounds + m.revisions > 0 then null else r.approval_id end,
    rechecked_until = case when m.rechecked then clock_timestamp() + interval '30 seconds' end,
    lease_token = case when m.keep_lease then r.lease_token end, lease_until = case when m.keep_lease then r.lease_until end,
    attempts = 0, retry_until = null,
    closed_at = case when m.terminal then clock_timestamp() end
from unnest(cast(:ids as uuid[]), cast(:from_states as text[]), cast(:events as text[]), cast(:to_states as text[]),
    cast(:reasons as text[]), cast(:rounds as integer[]), cast(:revisions as integer[]), cast(:rechecked as boolean[]),
    cast(:keep_leases as boolean[]), cast(:terminal as boolean[]))
    as m (id, from_state, event, to_state, reason, rounds, revisions, rechecked, keep_lease, terminal)
where r.id = m.id and r.state = m.from_state
  -- Not IS NOT DISTINCT FROM: the planner takes that for one row in all and then reads the whole table a chunk.
  and coalesce(r.lease_token, '00000000-0000-0000-0000-000000000000') = coalesce(cast(:token as uuid), '00000000-0000-0000-0000-000000000000')
returning r.id
