"""Each login role does its duty and nothing else; what all agree never changes refuses even the tables' owner."""

from __future__ import annotations

import itertools

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from policies.effects import EFFECT_TRANSITIONS, EffectState
from policies.states import TERMINAL, TRANSITIONS, Event, State
from resources.store.engine import sqlstate
from tests.postgres import Database
from tests.store.requests import Person, Superuser

INTAKE, WORKER, REVIEWER, OPERATOR, AUDITOR = ROLES = (
    "failsafe_intake",
    "failsafe_worker",
    "failsafe_reviewer",
    "failsafe_operator",
    "failsafe_auditor",
)
NOT_PERMITTED = "42501"
APPEND_ONLY = "FS003"
NO_TRANSITION = "FS002"


def refusal(url: str, statement: str) -> str | None:
    """The SQLSTATE that refuses the statement to this login, or None if it would be let through (it is undone)."""
    options = {"options": "-c search_path=failsafe"}
    with sa.create_engine(url, poolclass=sa.NullPool, connect_args=options).connect() as connection:
        try:
            connection.exec_driver_sql(statement)
        except DBAPIError as error:
            return sqlstate(error)
        finally:
            connection.rollback()
    return None


@pytest.fixture
def asked(superuser: Superuser) -> Person:
    """One request that waits for a vote, with something in every table it takes."""
    clerk = superuser.person("clerk")
    request = superuser.asked(clerk)
    superuser.run(
        "insert into approval_votes values (:approval, :voter, 'approve', '', '', '', clock_timestamp())",
        approval=request.approval_id,
        voter=clerk.id,
    )
    return clerk


VOTES = (
    "select * from cast_vote('fss_x', gen_random_uuid(), 'approve', '', '', '')",
    "insert into approval_votes (approval_id, voter, vote) select id, excluded[1], 'approve' from approval_requests",
    "insert into approval_resolutions (approval_id, outcome) select id, 'released' from approval_requests",
)
EFFECTS = (
    "select * from start_effects(gen_random_uuid(), 'Payments', '{}', '{}', '{}', '{}', '{}')",
    "select * from record_outcomes(gen_random_uuid(), '{}', '{}', '{}', '{}', '{}')",
    "insert into effects (idempotency_key) values ('x')",
    "update effects set state = 'in_flight'",
    "delete from effects",
)
CREDENTIALS = (
    "select credential_hash from principals",
    "select * from principals",
    "select * from sessions",
    "update principals set roles = '{support_lead}'",
    "insert into sessions values (sha256(''), gen_random_uuid(), now(), now() + interval '1 hour')",
    "select * from authenticate('fst_x')",
    "select * from session_principal('fss_x')",
)
PRINCIPALS = (
    "select * from create_principal('human', 'x', null, '{}')",
    "select disable_principal('clerk')",
    "select set_roles('clerk', '{support_lead}')",
)
OPERATIONS = (
    "select pause_work('x', 'everything', '*', 'x')",
    "select resume_work('x', 'everything', '*', 'x')",
    "insert into pauses values ('everything', '*')",
    "delete from pauses",
    "select cancel_request('x', gen_random_uuid(), 'x')",
    "select redrive_requests('x', '{}', 'x', false)",
    "select discard_requests('x', '{}', 'x', false)",
    "select resolve_unknown('x', 'x', true, 'x')",
    "select resolve_compensation('x', gen_random_uuid(), 'x')",
    "select input_wanted('x', gen_random_uuid())",
    "select supply_input('x', gen_random_uuid(), 1, '', 'x')",
)
CLEARING = (
    "select suspect_effects(gen_random_uuid(), '{}', '{}', '{}', '{}', '{}', '{}')",
    "select clear_requests(gen_random_uuid(), '{}', 1)",
    "select settle_late_undo(gen_random_uuid(), 'x', 'done', '0 s', '')",
    "select notice_restore()",
)
EPOCHS = (
    "select declare_restored('x', 'x')",
    "select ask_undo('x', 'x', 'x')",
    "select republish_events('x', '{}', 'x', false)",
)
GROUND = (
    "update requests set supplied = true",
    "insert into request_inputs values (gen_random_uuid(), 2, gen_random_uuid(), now(), '{x}', '{}')",
    "update request_inputs set payload = '{}'",
    "delete from request_inputs",
    "update requests set epoch = 9",
    "insert into epochs (number, identity, reason) values (9, 'x', 'x')",
    "update epochs set identity = 'x'",
    "delete from epochs",
    "select begin_epoch(9, null, 'x')",
    "select note_ground()",
    "update effects set undo_due_at = now()",
    "update outbox set parked_at = null",
)
PROPOSALS = (
    "update proposals set canonical = 'x'",
    "update proposals set output = 'x'",
    "delete from proposals",
    "truncate proposals cascade",
    "update approval_requests set quorum = 1, excluded = '{}'",
    "update approval_requests set expires_at = expires_at + interval '1 day'",
    "delete from approval_requests",
    "update approval_votes set vote = 'approve'",
    "delete from approval_votes",
    "update approval_resolutions set outcome = 'released'",
    "delete from approval_resolutions",
)
REQUESTS = (
    "update requests set state = 'executing', last_event = 'approved', state_seq = state_seq + 1",
    "update requests set payload = 'x'",
    "delete from requests",
    "select * from accept_requests('x', 'refunds', '1', '', '{}', '{}', '{}', '{}', '{}')",
)
LEDGER = (
    "insert into audit_events select * from audit_events",
    "update audit_events set payload = ''",
    "delete from audit_events",
    "truncate audit_events",
    "insert into audit_heads values ('forged', 1, sha256(''))",
    "update audit_heads set seq = 0",
    "delete from audit_heads",
    "truncate audit_heads",
    "select * from write_audit(array['system'], array['principal.created'], array['x'], array[''::bytea])",
)
JUDGEMENTS = (
    "update assessments set decision = 'auto', demand = null",
    "delete from assessments",
    "update findings set verdict = 'passed'",
    "delete from findings",
    "delete from dead_letters",
    "update pauses set reason = 'x'",
)
GUARDS = (
    "alter table audit_events disable trigger all",
    "drop trigger audit_events_never_change on audit_events",
    "create function may_vote(voter principals, asked integer) returns boolean language sql as 'select true'",
    "alter function may_vote(principals, approval_requests) set search_path = pg_temp",
    "set role failsafe_owner",
    "set session_replication_role = replica",
)

FORBIDDEN = {
    INTAKE: (
        *VOTES,
        *EFFECTS,
        *CREDENTIALS,
        *PRINCIPALS,
        *OPERATIONS,
        *CLEARING,
        *EPOCHS,
        *PROPOSALS,
        *REQUESTS[:3],
        "select * from requests",
    ),
    WORKER: (
        *VOTES,
        *EFFECTS[2:],
        *CREDENTIALS,
        *PRINCIPALS,
        *OPERATIONS,
        *EPOCHS,
        *PROPOSALS,
        *REQUESTS[1:],
        "select sign_in('x')",
    ),
    REVIEWER: (
        *VOTES[1:],
        *EFFECTS,
        *CREDENTIALS,
        *PRINCIPALS,
        *OPERATIONS,
        *CLEARING,
        *EPOCHS,
        *PROPOSALS,
        *REQUESTS,
    ),
    OPERATOR: (*VOTES, *EFFECTS, *CREDENTIALS, *CLEARING, *PROPOSALS, *REQUESTS),
    AUDITOR: (
        *VOTES,
        *EFFECTS,
        *CREDENTIALS,
        *PRINCIPALS,
        *OPERATIONS,
        *CLEARING,
        *EPOCHS,
        *PROPOSALS,
        *REQUESTS,
        "select sign_in('x')",
    ),
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.usefixtures("asked")
def test_a_role_cannot_do_what_is_not_its_duty(database: Database, role: str) -> None:
    """Its own login, not a role taken on, is refused every statement of another's duty, ledger and guards included."""
    allowed = [
        statement
        for statement in (*FORBIDDEN[role], *LEDGER, *JUDGEMENTS, *GUARDS, *GROUND)
        if refusal(database.url(role), statement) != NOT_PERMITTED
    ]
    assert allowed == []


def test_every_function_with_rights_of_its_owner_is_closed(superuser: Superuser) -> None:
    """None may be called by just anybody, and none looks names up where a caller could put something else."""
    open_to_all = superuser.value(
        "select count(*) from pg_proc where pronamespace = 'failsafe'::regnamespace"
        " and has_function_privilege('public', oid, 'execute')"
    )
    unpinned = superuser.value(
        "select count(*) from pg_proc where pronamespace = 'failsafe'::regnamespace and prosecdef"
        " and not coalesce('search_path=failsafe, pg_temp' = any (proconfig), false)"
    )
    definers = superuser.value(
        "select count(*) from pg_proc where pronamespace = 'failsafe'::regnamespace and prosecdef"
    )
    assert (open_to_all, unpinned) == (0, 0)
    assert definers


DUTY = {
    INTAKE: "select register_workflow('refunds', 'day', 'UTC', '2026-01-01')",
    WORKER: "update requests set next_eligible_at = now()",
    REVIEWER: "select review_document from approval_requests",
    OPERATOR: "select set_roles('clerk', '{}')",
    AUDITOR: "select * from audit_v",
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.usefixtures("asked")
def test_a_role_can_do_its_duty(database: Database, role: str) -> None:
    """What refuses the statements above is the grant, not a login that can do nothing at all."""
    assert refusal(database.url(role), DUTY[role]) is None


@pytest.mark.parametrize(
    ("role", "type_"),
    [
        (INTAKE, "approval.vote"),
        (INTAKE, "proposal.recorded"),
        (WORKER, "principal.created"),
        (WORKER, "effect.started"),
        (WORKER, "intake.received"),
        (OPERATOR, "approval.vote"),
    ],
)
@pytest.mark.usefixtures("superuser")
def test_a_role_writes_only_its_own_kinds_of_event(database: Database, role: str, type_: str) -> None:
    """The ledger's open door asks who writes what."""
    statement = f"select append_audit(array['system'], array['{type_}'], array['x'], array[''::bytea])"
    assert refusal(database.url(role), statement) in {"FS001", NOT_PERMITTED}


@pytest.mark.parametrize(
    "table", ["audit_events", "proposals", "approval_votes", "approval_requests", "request_inputs"]
)
@pytest.mark.parametrize("change", ["update {} set {} = {}", "delete from {}", "truncate {} cascade"])
@pytest.mark.usefixtures("asked")
def test_what_is_append_only_refuses_its_owner_too(database: Database, table: str, change: str) -> None:
    """Where grants do not hold, a trigger does: nothing recorded is changed, removed or emptied."""
    columns = {
        "audit_events": "actor",
        "proposals": "model",
        "approval_votes": "reason",
        "approval_requests": "tier",
        "request_inputs": "payload",
    }
    statement = change.format(table, columns[table], columns[table])
    assert refusal(database.url(), statement) == APPEND_ONLY


def test_the_database_takes_the_same_steps_as_the_policy(superuser: Superuser) -> None:
    """Every (state, event, state) is tried: the trigger lets through exactly the table that the code decides by."""
    request_id = superuser.received(superuser.person("clerk"))
    let_through, refusals = set(), set()
    events = [*Event, "", "unheard_of"]
    with superuser.engine.connect() as connection:
        connection.exec_driver_sql("set session_replication_role = replica")  # only to stand in a state without a path
        for before in State:
            connection.execute(
                sa.text(
                    "update requests set state = :state, closed_at = case when :closed then now() end where id = :id"
                ),
                {"state": before.value, "closed": before in TERMINAL, "id": request_id},
            )
            connection.exec_driver_sql("set session_replication_role = origin")
            for event, after in itertools.product(events, State):
                if after is before:
                    continue  # no step: an event is only written with one
                savepoint = connection.begin_nested()
                try:
                    connection.execute(
                        sa.text(
                            "update requests set state = :after, last_event = :event, state_seq = state_seq + 1,"
                            " closed_at = case when :closed then now() end where id = :id"
                        ),
                        {"after": after.value, "event": event, "closed": after in TERMINAL, "id": request_id},
                    )
                    let_through.add((before.value, str(event), after.value))
                except DBAPIError as error:
                    refusals.add(sqlstate(error))
                savepoint.rollback()
            connection.exec_driver_sql("set session_replication_role = replica")
        connection.rollback()
    assert refusals == {NO_TRANSITION}
    assert let_through == {(state.value, event.value, step.to.value) for (state, event), step in TRANSITIONS.items()}


@pytest.mark.parametrize("by", [0, 2, -1])
def test_a_step_counts_by_one(superuser: Superuser, database: Database, by: int) -> None:
    """A legal step that does not raise state_seq by exactly one is refused, so no change of state goes uncounted."""
    superuser.received(superuser.person("clerk"))
    statement = (
        f"update requests set state = 'proposal_ready', last_event = 'proposal_recorded', state_seq = state_seq + {by}"
    )
    assert refusal(database.url(), statement) == NO_TRANSITION


def test_a_request_begins_as_received(superuser: Superuser, database: Database) -> None:
    """No row is born in a later state."""
    superuser.received(superuser.person("clerk"))
    copy = (
        "insert into requests select (jsonb_populate_record(r, jsonb_build_object("
        "'id', gen_random_uuid(), 'operation_id', 'copy', '{}', {}))).* from requests r"
    )
    assert refusal(database.url(), copy.format("state", "'executing'")) == NO_TRANSITION
    assert refusal(database.url(), copy.format("state_seq", "7")) == NO_TRANSITION
    assert refusal(database.url(), copy.format("state", "'received'")) is None


def test_effects_take_the_same_steps_as_the_policy(superuser: Superuser) -> None:
    """Every pair of effect states is tried against the trigger."""
    request_id = superuser.received(superuser.person("clerk"))
    superuser.run(
        "insert into effects (idempotency_key, request_id, revision, round, action_id, action_type, ordinal, intent,"
        " kind, provider, proposal_hash, parameters_hash, recovery, state, first_sent_at, started_at)"
        " values ('k', :id, 1, 1, '1:a', 'a', 1, 1, 'forward', 'P', sha256(''), sha256(''), '{}', 'intended',"
        " now(), now())",
        id=request_id,
    )
    let_through, refusals = set(), set()
    with superuser.engine.connect() as connection:
        for before, after in itertools.product(EffectState, EffectState):
            savepoint = connection.begin_nested()
            connection.exec_driver_sql("set session_replication_role = replica")
            connection.execute(sa.text("update effects set state = :state"), {"state": before.value})
            connection.exec_driver_sql("set session_replication_role = origin")
            try:
                connection.execute(sa.text("update effects set state = :state"), {"state": after.value})
                if before is not after:
                    let_through.add((before, after))
            except DBAPIError as error:
                refusals.add(sqlstate(error))
            savepoint.rollback()
    assert refusals == {NO_TRANSITION}
    assert let_through == set(EFFECT_TRANSITIONS)
