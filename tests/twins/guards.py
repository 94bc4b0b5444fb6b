"""The guards on which the promises rest, each with the change that removes it and the test that must notice."""

from __future__ import annotations

from dataclasses import dataclass

FUNCTIONS = "resources/store/functions"


@dataclass(frozen=True)
class Change:
    """Replace the one occurrence of a text in a file."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Twin:
    """The code without one guard. `test` is a pytest node id."""

    guard: str
    changes: tuple[Change, ...]
    test: str


TWINS = (
    Twin(
        "the token predicate of every move",
        (
            Change(
                "resources/store/sql/advance_requests.sql",
                "  and coalesce(r.lease_token, '00000000-0000-0000-0000-000000000000') = coalesce(cast(:token as uuid),"
                " '00000000-0000-0000-0000-000000000000')\n",
                "  and coalesce(cast(:token as text), '') is not null\n",
            ),
        ),
        "tests/store/test_leases.py::test_a_late_worker_advances_nothing",
    ),
    Twin(
        "the margin that a lease has before each send",
        (Change("ops/keeping.py", "and self._lease.seconds_left() > seconds", "and seconds >= 0"),),
        "tests/ops/test_lease_keeping.py::test_nothing_is_sent_unless_the_lease_outlasts_the_call",
    ),
    Twin(
        "the hash check at the start",
        (Change(f"{FUNCTIONS}/effects.sql", "then 'hash_mismatch'", "then null"),),
        "tests/store/test_start_effects.py::test_an_altered_proposal_is_refused",
    ),
    Twin(
        "the expiry check after locking",
        (
            Change(
                f"{FUNCTIONS}/effects.sql",
                "    instant := clock_timestamp(); -- after locking: now() is when the transaction began\n",
                "    instant := now();\n",
            ),
        ),
        "tests/store/test_approval_consumption.py::test_the_clock_is_read_after_waiting_for_the_lock",
    ),
    Twin(
        "the look-up before a second call",
        (Change("ops/asking.py", "    if not adapter.semantics.lookup:\n", "    if adapter.semantics.lookup:\n"),),
        "tests/ops/test_kills.py::test_a_worker_killed_at_any_moment_leaves_each_effect_once",
    ),
    Twin(
        "the unique key of the shared transaction",
        (Change("resources/adapters/sql.py", "    key text primary key,\n", "    key text,\n"),),
        "tests/adapters/test_sql.py::test_an_effect_and_its_key_are_written_once",
    ),
    Twin(
        "claims",
        (
            Change(
                "resources/store/sql/claims_of_others.sql",
                "where held.request_id <> c.id",
                "where held.request_id <> c.id and false",
            ),
        ),
        "tests/ops/test_claims.py::test_of_two_equal_receipts_in_one_chunk_one_is_released",
    ),
    Twin(
        "the transition trigger",
        (
            Change(
                f"{FUNCTIONS}/guards.sql.template",
                "<> all (array[{request_transitions}])",
                "<> all (array[]::text[]) and false",
            ),
        ),
        "tests/store/test_roles.py::test_the_database_takes_the_same_steps_as_the_policy",
    ),
    Twin(
        "the pivot",
        (
            Change(
                "policies/saga.py",
                "    return Event.UNDO_NEEDED if all(done) else Event.GAVE_UP\n",
                "    return Event.UNDO_NEEDED\n",
            ),
        ),
        "tests/ops/test_compensation.py::test_a_refusal_after_the_pivot_undoes_nothing",
    ),
    Twin(
        "one probe at a time",
        (Change(f"{FUNCTIONS}/providers.sql", "it.open_until is not null and it.probe_until > instant", "false"),),
        "tests/store/test_providers.py::test_one_probe_passes_cluster_wide_and_its_success_closes_the_breaker",
    ),
    Twin(
        "the recheck of a redrive",
        (
            Change(f"{FUNCTIONS}/parked.sql", "round = r.round + 1", "round = r.round"),
            Change(
                f"{FUNCTIONS}/parked.sql", "approval_id = null, rechecked_until = null", "approval_id = r.approval_id"
            ),
        ),
        "tests/operator/test_dead_letters.py::test_a_redrive_needs_a_new_approval",
    ),
    Twin(
        "the pause check at the start",
        (Change(f"{FUNCTIONS}/effects.sql", "p_provider)) then 'paused'", "p_provider) and false) then 'paused'"),),
        "tests/store/test_start_effects.py::test_what_is_paused_does_not_start",
    ),
)
