"""A new round or revision leaves the old approval request behind: void at once, its votes history, never counted."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from ops.execute import execute
from policies.errors import VoteRefused
from resources.store.rounds import Round, read_rounds
from tests.ops.passes import Shop, refund

TWO_PEOPLE = ("people: 1", "people: 2")


def change(shop: Shop, old: str, new: str) -> None:
    """Put a policy in force in which one text is another."""
    text = shop.workflow.policy_path.read_text()
    assert old in text
    shop.set_policy(text.replace(old, new, 1).replace('version: "1"', 'version: "2"'))


def rounds(shop: Shop) -> list[Round]:
    """Every round of the one request, the first one first."""
    return read_rounds(shop.url, shop.request("one").id)[::-1]


@pytest.fixture
def asked(shop: Shop) -> Shop:
    """A request that waits for a lead."""
    shop.queue({"one": refund("80.00")})
    shop.run()
    return shop


def test_a_release_that_went_stale_is_void_in_the_same_transaction(asked: Shop) -> None:
    """Released, then asked anew: the first round ends void, keeps its vote, and releases nothing any more."""
    asked.vote("one")
    first = asked.request("one").approval_id
    change(asked, *TWO_PEOPLE)
    asked.run(execute)
    assert [(one.outcome, len(one.votes)) for one in rounds(asked)] == [("voided", 1)]
    asked.run()
    assert [(one.round, one.outcome, one.quorum, len(one.votes)) for one in rounds(asked)] == [
        (1, "voided", 1, 1),
        (2, "open", 2, 0),
    ]
    # A worker that pointed the request back to it would find nothing to start by.
    asked.execute(
        "update requests set approval_id = :first, round = 1, state = 'executing', last_event = 'approved',"
        " state_seq = state_seq + 1 where operation_id = 'one'",
        first=first,
    )
    asked.run(execute)
    assert asked.calls() == []
    asked.assert_ledger_intact()


def test_votes_of_an_earlier_round_never_count(asked: Shop) -> None:
    """One of two voted, then it is asked anew: the new round needs both, and one of them may be the same person."""
    change(asked, *TWO_PEOPLE)
    asked.queue({"two": refund("81.00", order="A2")})
    asked.run()
    asked.vote("two", "lena")
    asked.execute(
        "update requests set round = round + 1, approval_id = null, state = 'proposal_ready',"
        " last_event = 'approval_stale', state_seq = state_seq + 1 where operation_id = 'two'"
    )
    asked.run()
    assert asked.vote("two", "otto").outcome == "open"
    assert asked.vote("two", "lena").outcome == "released"


def test_a_vote_on_a_void_round_is_refused_with_its_reason(asked: Shop) -> None:
    """Whoever still has the old page open is told that it is over."""
    asked.vote("one")
    change(asked, *TWO_PEOPLE)
    stale = rounds(asked)[0]
    asked.run()
    with pytest.raises(VoteRefused, match="went on to a new round") as refused:
        asked.vote("one", "otto", approval_id=stale.approval_id, review_hash=stale.review_hash)
    assert refused.value.code == "resolved"
    assert [len(one.votes) for one in rounds(asked)] == [1, 0]


def test_a_consumed_release_stays_what_it_was(asked: Shop) -> None:
    """After an effect was started by it, a redrive leaves it released: it is the authority of what was done."""
    asked.vote("one")
    asked.run()
    asked.execute("update requests set approval_id = null where operation_id = 'one'")
    [only] = rounds(asked)
    assert (only.outcome, only.consumed_at is not None) == ("released", True)


def test_an_expired_round_ends_expired(asked: Shop) -> None:
    """Nobody decided: expiry says so in the resolution, in the ledger and to consumers, and approves nothing."""
    asked.execute("alter table approval_requests disable trigger user")
    asked.execute(
        "update approval_requests set opened_at = opened_at - interval '3 days', expires_at = clock_timestamp()"
    )
    asked.execute("alter table approval_requests enable trigger user")
    asked.run()
    assert [one.outcome for one in rounds(asked)] == ["expired"]
    assert asked.states() == {"one": "expired"}
    assert asked.calls() == []
    assert asked.events("one")[-1] == "approval.expired"
    assert asked.rows("select type from outbox order by aggregate_seq") == [
        ("approval.requested",),
        ("approval.expired",),
    ]


def test_what_is_void_was_void_before_anybody_could_see_the_new_round(asked: Shop) -> None:
    """One transaction: there is no moment at which neither or both stand."""
    asked.vote("one")
    change(asked, *TWO_PEOPLE)
    asked.run()
    moved = asked.row(
        "select (select xmin::text from approval_resolutions s where s.approval_id = a.id) as voided, a.round"
        " from approval_requests a where a.round = 1"
    )
    told = asked.row("select xmin::text as stale from audit_events where type = 'approval.stale'")
    assert moved.voided == told.stale


def test_only_the_store_itself_voids(asked: Shop) -> None:
    """No login writes a resolution."""
    with asked.connect() as connection:
        for role in (
            "failsafe_worker",
            "failsafe_reviewer",
            "failsafe_operator",
            "failsafe_auditor",
            "failsafe_intake",
        ):
            grants = connection.execute(
                sa.text(
                    "select has_table_privilege(:role, 'failsafe.approval_resolutions', 'insert, update, delete'),"
                    " has_function_privilege(:role, 'failsafe.void_approval()', 'execute')"
                ),
                {"role": role},
            ).one()
            assert tuple(grants) == (False, False)
