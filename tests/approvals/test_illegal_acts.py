"""Every illegal act around a decision, by direct SQL as the reviewer's login: refused, with nothing changed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from policies.hashing import PROPOSAL, canonical_bytes, domain_hash
from resources.store.engine import sqlstate
from resources.store.principals import disable_principal
from tests.approvals.asking import LEAD, Asking
from tests.store.requests import AskedRequest, Person

Document = dict[str, Any]


class Psql:
    """A prompt of the reviewer's login, with the session of a lead who may decide."""

    def __init__(self, asking: Asking, asked: AskedRequest, lead: Person) -> None:
        self.asking, self.asked, self.lead = asking, asked, lead
        self.session = asking.session(lead).secret
        self._engine = sa.create_engine(
            asking.reviewer, poolclass=sa.NullPool, connect_args={"options": "-c search_path=failsafe"}
        )

    def refusal(self, statement: str, **values: object) -> str | None:
        """The SQLSTATE that refuses a statement; None: it was carried out."""
        usual = {
            "session": self.session,
            "approval": self.asked.approval_id,
            "request": self.asked.id,
            "proposal": self.asked.proposal_hash,
            "review": self.asked.review_hash,
            "lead": self.lead.id,
        }
        text = sa.text(statement)
        named = {name: value for name, value in (usual | values).items() if f":{name}" in statement}
        try:
            with self._engine.begin() as connection:
                connection.execute(text, named)
        except DBAPIError as error:
            return sqlstate(error)
        return None

    def vote(self, vote: str = "approve", **values: object) -> str | None:
        """Call the function that takes votes."""
        return self.refusal(
            "select * from cast_vote(:session, :approval, :vote, :proposal, :review, '')", vote=vote, **values
        )

    def edit(self, change: Callable[[Document], None], **values: object) -> str | None:
        """Call the function that takes edits with the standing proposal as its next revision, `change` applied."""
        stored = self.asking.superuser.value("select canonical from proposals where request_id = :id", id=self.asked.id)
        document = json.loads(bytes(stored))  # type: ignore[call-overload]  # bytes, as the column says
        document["revision"] = 2
        change(document)
        canonical = canonical_bytes(document)
        made = {"canonical": canonical, "hash": domain_hash(PROPOSAL, canonical), "reason": "typo", **values}
        return self.refusal(
            "select record_edit(:session, :approval, :proposal, :review, '{}', :canonical, :hash, :reason)", **made
        )

    def unchanged(self) -> bool:
        """Nobody decided, voted or edited, and the ledger has nothing to tell."""
        counts = self.asking.superuser.row(
            "select (select count(*) from approval_votes where approval_id = :approval) as votes,"
            " (select count(*) from approval_resolutions where approval_id = :approval) as resolutions,"
            " (select count(*) from proposals where request_id = :id) as proposals,"
            " (select count(*) from audit_events where stream = 'request:' || :id) as events",
            approval=self.asked.approval_id,
            id=str(self.asked.id),
        )
        return tuple(counts) == (0, 0, 1, 0) and self.asking.state(self.asked) == "awaiting_approval"


@pytest.fixture
def psql(asking: Asking) -> Psql:
    """A prompt, and a request that waits for two leads."""
    return Psql(asking, asking.ask(quorum=2), asking.person(LEAD))


NOT_GRANTED = "42501"

TABLES = [
    "insert into approval_votes values (:approval, :lead, 'approve', '', :proposal, :review, now())",
    "update approval_votes set vote = 'approve' where approval_id = :approval",
    "delete from approval_votes where approval_id = :approval",
    "insert into approval_resolutions values (:approval, 'released', now())",
    "update approval_resolutions set outcome = 'released'",
    "delete from approval_resolutions",
    "update approval_requests set quorum = 1 where id = :approval",
    "update approval_requests set excluded = '{}', excluded_people = '{}'",
    "update approval_requests set expires_at = expires_at + interval '1 day'",
    "update approval_requests set escalations = '[]', amounts = '[]'",
    "insert into role_grants select :request, :lead, :approval, 'support_lead', now(), now() + interval '1 h', 'x'",
    "update role_grants set revoked_at = null, ends_at = ends_at + interval '1 year'",
    "delete from approval_notices",
    "insert into approval_notices values (:approval, 'reminder', 0, now())",
    "update principals set limits = null, roles = '{support_lead}', disabled_at = null",
    "insert into sessions values (sha256('x'), :lead, now(), now() + interval '1 h')",
    "update proposals set canonical = 'x' where request_id = :request",
    "insert into proposals (request_id, revision) values (:request, 2)",
    "update requests set state = 'executing', last_event = 'approved', state_seq = state_seq + 1 where id = :request",
    "select payload from requests where id = :request",
    "select * from role_grants",
]
FUNCTIONS = [
    "select set_limits('x', null)",
    "select set_roles('x', '{support_lead}')",
    "select session_principal(:session)",
    "select open_decision(:session, :approval, :proposal, :review)",
    "select end_round(:request, 'approved', 'executing', 'x')",
    "select announce(array['request:' || cast(:request as text)], array['approval.vote'], array['{}'::json])",
    "select write_audit(array['system'], array['approval.vote'], array['x'], array[''::bytea])",
    "select append_audit(array['system'], array['approval.vote'], array['x'], array[''::bytea])",
    "select expire_approvals('refunds', '2026-01-01', 1)",
    "select announce_waiting('refunds', '2026-01-01', 1)",
    "select * from start_effects(gen_random_uuid(), 'Payments', '{}', '{}', '{}', '{}', '{}')",
]


@pytest.mark.parametrize("statement", [*TABLES, *FUNCTIONS])
def test_nothing_beside_the_functions_is_granted(psql: Psql, statement: str) -> None:
    """Not a table to write, not an inner function to call."""
    assert psql.refusal(statement) == NOT_GRANTED
    assert psql.unchanged()


@pytest.mark.parametrize("vote", ["approve", "deny"])
@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ({"session": "fss_" + "0" * 64}, "FS401"),
        ({"session": None}, "FS401"),
        ({"approval": uuid.UUID(int=1)}, "FS404"),
        ({"proposal": bytes(32)}, "FS412"),
        ({"review": bytes(32)}, "FS412"),
        ({"proposal": None}, "FS412"),
    ],
)
def test_a_vote_without_session_or_on_something_else(
    psql: Psql, vote: str, values: dict[str, object], refusal: str
) -> None:
    """Neither way, whatever the login."""
    assert psql.vote(vote, **values) == refusal
    assert psql.unchanged()


@pytest.mark.parametrize("vote", ["maybe", "", None])
def test_a_vote_that_is_none(psql: Psql, vote: str | None) -> None:
    """A vote approves or denies."""
    assert str(psql.vote(vote)) in {"23514", "23502"}  # type: ignore[arg-type]  # what is refused
    assert psql.unchanged()


def test_the_token_is_no_session(psql: Psql) -> None:
    """Nor is the secret of somebody who was disabled since."""
    assert psql.vote(session=psql.lead.token) == "FS401"
    disable_principal(psql.asking.operator, psql.lead.name)
    assert psql.vote() == "FS401"
    assert psql.unchanged()


def test_nobody_votes_twice(psql: Psql) -> None:
    """The key refuses it, the same way and the other way."""
    assert psql.vote() is None
    for vote in ("approve", "deny"):
        assert psql.vote(vote) == "23505"


@pytest.mark.parametrize("ending", ["released", "denied", "expired", "cancelled", "overdue", "voided"])
def test_nobody_votes_or_edits_after_the_end(asking: Asking, ending: str) -> None:
    """However it ended, and whether or not anybody has noted that its time is over."""
    asked = asking.ask()
    psql = Psql(asking, asked, asking.person(LEAD))
    if ending in {"released", "denied"}:
        asking.vote(asking.person(LEAD), asked, "approve" if ending == "released" else "deny")
    elif ending in {"expired", "overdue"}:
        asking.age(asked, 3600)
        assert ending == "overdue" or asking.expire()
    elif ending == "cancelled":
        operator = asking.session(asking.person("operator")).secret
        asking.superuser.value("select cancel_request(:session, :id, 'no')", session=operator, id=asked.id)
    else:
        asking.superuser.run("update requests set round = 2, approval_id = null where id = :id", id=asked.id)
    late = "FS411" if ending in {"expired", "overdue"} else "FS410"
    before = asking.events(asked)
    for vote in ("approve", "deny"):
        assert psql.vote(vote) == late
    assert psql.edit(_smaller) == late
    assert asking.outcome(asked) == (None if ending == "overdue" else ending)
    assert asking.events(asked) == before
    asking.expire()


def _smaller(document: Document) -> None:
    document["actions"][0]["parameters"]["amount"]["minor"] = 1


def _changed(path: str, value: Any) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        _smaller(document)
        *way, last = path.split("/")
        place: Any = document
        for step in way:
            place = place[int(step)] if step.isdigit() else place[step]
        place[last] = value

    return change


def _one_more(document: Document) -> None:
    _smaller(document)
    document["actions"].append(document["actions"][0])


def _one_less(document: Document) -> None:
    document["actions"] = []


FORGERIES = {
    "another request": _changed("request_id", str(uuid.UUID(int=1))),
    "another workflow": _changed("workflow", "payroll"),
    "another version": _changed("workflow_version", "2"),
    "another catalogue": _changed("catalogue", "1" * 64),
    "other sources": _changed("sources", {"message": "1" * 64}),
    "a revision ahead": _changed("revision", 3),
    "the same revision": _changed("revision", 1),
    "another adapter": _changed("actions/0/adapter", "Payroll"),
    "another target": _changed("actions/0/target", "1" * 64),
    "another type": _changed("actions/0/type", "order.pay"),
    "another id": _changed("actions/0/action_id", "2:order.refund"),
    "another rationale": _changed("actions/0/rationale", "trust me"),
    "another confidence": _changed("actions/0/confidence", "1"),
    "something more": _changed("note", "x"),
    "an action more": _one_more,
    "no action": _one_less,
    "nothing changed": lambda document: None,
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_an_edit_changes_parameters_and_nothing_else(psql: Psql, forgery: str) -> None:
    """The database compares the new proposal with the one that stands."""
    assert psql.edit(FORGERIES[forgery]) == "FS400"
    assert psql.unchanged()


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ({"session": "fss_" + "0" * 64}, "FS401"),
        ({"approval": uuid.UUID(int=1)}, "FS404"),
        ({"proposal": bytes(32)}, "FS412"),
        ({"review": bytes(32)}, "FS412"),
        ({"hash": bytes(32)}, "FS400"),
        ({"hash": None}, "FS400"),
        ({"reason": ""}, "FS400"),
        ({"reason": None}, "FS400"),
        ({"canonical": b"{"}, "FS400"),
    ],
)
def test_an_edit_is_checked_as_a_vote_is(psql: Psql, values: dict[str, object], refusal: str) -> None:
    """Session, hashes of what was shown, hash of what is proposed."""
    assert psql.edit(_smaller, **values) == refusal
    assert psql.unchanged()


def test_who_may_not_decide_reads_and_edits_nothing(asking: Asking) -> None:
    """The function that gives a proposal out for editing gives it to those who may decide."""
    initiator = asking.person(LEAD)
    asked = asking.ask(initiator=initiator, parties=["P-reads"])
    for person in (
        initiator,
        asking.person(LEAD, external_id="P-reads"),
        asking.person("clerk"),
        asking.person(LEAD, kind="service"),
    ):
        psql = Psql(asking, asked, person)
        assert psql.refusal("select * from proposal_to_edit(:session, :approval)") == "FS403"
        assert psql.edit(_smaller) == "FS403"
        assert psql.vote() == "FS403"
        assert psql.unchanged()
    assert Psql(asking, asked, asking.person(LEAD)).edit(_smaller) is None


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [
        ("select delegate_role(:session, 'nobody', 'support_lead', now(), now() + interval '1 h', 'x')", "FS404"),
        ("select delegate_role(:session, 'nobody', 'director', now(), now() + interval '1 h', 'x')", "FS403"),
        ("select delegate_role(:session, 'nobody', null, now(), now() + interval '1 h', 'x')", "FS403"),
        ("select delegate_role('fss_x', 'nobody', 'support_lead', now(), now() + interval '1 h', 'x')", "FS401"),
        ("select revoke_delegation('fss_x', gen_random_uuid())", "FS401"),
        ("select list_delegations('fss_x')", "FS401"),
    ],
)
def test_a_loan_needs_a_session_a_role_and_somebody(psql: Psql, statement: str, refusal: str) -> None:
    """By direct SQL as by the command."""
    assert psql.refusal(statement) == refusal


@pytest.mark.parametrize(
    ("starts", "ends", "reason"),
    [
        ("now()", "null", "x"),
        ("null", "now() + interval '1 h'", "x"),
        ("now()", "now() + interval '1 h'", ""),
        ("now() + interval '2 h'", "now() + interval '1 h'", "x"),
        ("now() - interval '2 h'", "now() - interval '1 h'", "x"),
        ("now()", "'infinity'", "x"),
    ],
)
def test_a_loan_has_a_time_and_a_reason(psql: Psql, starts: str, ends: str, reason: str) -> None:
    """A missing or endless time is refused."""
    to = psql.asking.person("clerk").name
    statement = f"select delegate_role(:session, '{to}', '{LEAD}', {starts}, {ends}, '{reason}')"
    assert psql.refusal(statement) == "FS400"
