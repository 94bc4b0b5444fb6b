"""The one door to a provider: what does not hold when an effect is to start, it does not start, and says why."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from policies.effects import EffectState
from policies.hashing import PARAMETERS, domain_hash
from policies.refusals import Refusal
from resources.store.effects import Start, start_effects
from resources.store.engine import Duty, engine_for, transaction
from resources.store.migrate import HERE
from resources.store.principals import disable_principal
from tests.postgres import Database
from tests.store.released import SAGA, ReleasedRequest, Worker
from tests.store.requests import Superuser
from tests.store.test_roles import WORKER


@pytest.fixture
def auto(worker: Worker) -> ReleasedRequest:
    """A request that policy released by itself."""
    return worker.released()


@pytest.fixture
def approved(worker: Worker) -> ReleasedRequest:
    """A request that a person released."""
    return worker.released(decision="review", voters=[worker.person("lead")])


def test_what_was_released_starts_and_is_written_down_before_it_is_sent(
    worker: Worker, approved: ReleasedRequest
) -> None:
    """The effect, its recovery, the consumed approval and the ledger event are there once the call may be made."""
    (started,) = worker.start(approved)
    assert started.refusal is None
    assert started.key == f"refunds:{approved.id}:1:order.refund:1"
    effect = worker.effect(approved)
    assert (effect.state, effect.attempts, effect.lease_token) == ("in_flight", 1, approved.token)
    assert (effect.proposal_hash, effect.parameters_hash) == (approved.proposal_hash, approved.parameters_hashes[0])
    assert effect.recovery == {"undo": None}
    assert worker.consumed_at(approved) is not None
    event = worker.superuser.row(
        "select * from audit_v where stream = :stream and type = 'effect.started'", stream=f"request:{approved.id}"
    )
    assert started.key in event.payload


def test_an_automatic_release_starts_without_an_approval(worker: Worker, auto: ReleasedRequest) -> None:
    """The live assessment stands in its place."""
    assert worker.refusal(auto) is None


def test_one_refusal_does_not_hold_back_the_others(worker: Worker) -> None:
    """Each of a group is answered by itself."""
    good, bad = worker.released(), worker.released()
    worker.change(bad, "lease_token = :token", token=good.token)
    answers = worker.start(good, replace(bad.start(), parameters_hash=bytes(32)), good.start())
    assert {answer.request_id: answer.refusal for answer in answers} == {good.id: None, bad.id: "parameters_changed"}


def test_nothing_starts_under_a_lease_that_is_lost_or_over(worker: Worker, auto: ReleasedRequest) -> None:
    """A replaced token, and one whose time is over though nobody swept it, start nothing."""
    (answer,) = worker.start(auto, token=uuid.uuid4())
    assert answer.refusal == "lease_lost"
    worker.change(auto, "lease_until = clock_timestamp()")
    assert worker.refusal(auto) == "lease_lost"
    assert worker.untouched(auto)


def test_an_unknown_request_or_action_is_refused(worker: Worker, auto: ReleasedRequest) -> None:
    """What the proposal does not hold cannot be started."""
    assert worker.refusal(auto, replace(auto.start(), request_id=uuid.uuid4())) == "no_such_request"
    for ordinal in (2, 0, -1):  # JSON counts negative indexes from the end
        assert worker.refusal(auto, replace(auto.start(), ordinal=ordinal)) == "no_such_action"
    assert worker.untouched(auto)


@pytest.mark.parametrize(
    ("event", "state"),
    [("review_needed", "needs_review"), ("gave_up", "dead_lettered"), ("approval_stale", "proposal_ready")],
)
def test_only_an_executing_request_starts_effects(
    worker: Worker, auto: ReleasedRequest, event: str, state: str
) -> None:
    """A request that left `executing` starts nothing, lease or not."""
    worker.superuser.move(auto.id, event, state)
    assert worker.refusal(auto) == "not_executing"


ALTERED = "canonical = convert_to(replace(convert_from(canonical, 'UTF8'), '0.00 EUR', '9.00 EUR'), 'UTF8')"
REHASHED = "hash = sha256(convert_to('failsafe/proposal/v1', 'UTF8') || '\\x00'::bytea || canonical)"
STORED_PARAMETERS_HASH = """
    select sha256(convert_to('failsafe/parameters/v1', 'UTF8') || '\\x00'::bytea || convert_to(
        (convert_from(canonical, 'UTF8')::json -> 'actions' -> 0 -> 'parameters')::text, 'UTF8'))
    from proposals where request_id = :id
"""


def test_an_altered_proposal_is_refused(worker: Worker, auto: ReleasedRequest) -> None:
    """Somebody with the superuser's rights changes the amount: the hash no longer names what is stored."""
    worker.tamper("proposals", ALTERED, auto)
    assert worker.refusal(auto) == "hash_mismatch"
    assert worker.untouched(auto)


def test_an_altered_proposal_with_a_new_hash_is_refused(worker: Worker, approved: ReleasedRequest) -> None:
    """The hash put right as well is not the one that was approved, nor are the parameters those that were checked."""
    worker.tamper("proposals", ALTERED, approved)
    worker.tamper("proposals", REHASHED, approved)
    assert worker.refusal(approved) == "parameters_changed"
    stored = worker.superuser.value(STORED_PARAMETERS_HASH, id=approved.id)
    assert isinstance(stored, bytes)
    assert worker.refusal(approved, replace(approved.start(), parameters_hash=stored)) == "no_approval"
    assert worker.untouched(approved)


def test_other_parameters_than_approved_are_refused(worker: Worker, approved: ReleasedRequest) -> None:
    """A worker that would send something else than the sealed parameters is stopped by their hash."""
    assert worker.refusal(approved, replace(approved.start(), parameters_hash=bytes(32))) == "parameters_changed"
    assert worker.untouched(approved)


@pytest.mark.parametrize("state", [one for one in EffectState if one is not EffectState.INTENDED])
def test_an_effect_that_was_begun_is_not_begun_again(worker: Worker, auto: ReleasedRequest, state: EffectState) -> None:
    """Done, refused, in flight, unknown, fenced or late: only what was certainly not done may be sent again."""
    worker.start(auto)
    worker.tamper("effects", f"state = '{state}'", auto)
    assert worker.refusal(auto) == f"effect_{state}"
    assert worker.effect(auto).attempts == 1


def test_an_effect_certainly_not_done_starts_again_under_its_key(worker: Worker, auto: ReleasedRequest) -> None:
    """Back at intended, the same key goes out once more and the attempt is counted."""
    (first,) = worker.start(auto)
    assert worker.record(auto, first, EffectState.INTENDED) == {first.key}
    (second,) = worker.start(auto)
    assert (second.refusal, second.key) == (None, first.key)
    assert worker.effect(auto).attempts == 2


def test_actions_start_in_their_order(worker: Worker) -> None:
    """A later action waits until every earlier one is done, whatever else became of it."""
    saga = worker.released(actions=SAGA)
    assert worker.refusal(saga, saga.start(2)) == "earlier_action_open"
    (first,) = worker.start(saga)
    assert worker.refusal(saga, saga.start(2)) == "earlier_action_open"
    worker.record(saga, first, EffectState.DONE)
    assert worker.refusal(saga, saga.start(3)) == "earlier_action_open"
    assert worker.refusal(saga, saga.start(2)) is None


PAUSE = "insert into pauses (scope, name, paused_by, reason) values (:scope, :name, :by, 'incident')"


@pytest.mark.parametrize(
    ("scope", "name"),
    [("everything", "*"), ("workflow", "refunds"), ("action_type", "order.refund"), ("provider", "Payments")],
)
def test_what_is_paused_does_not_start(worker: Worker, auto: ReleasedRequest, scope: str, name: str) -> None:
    """Each scope of a pause holds back what is in it, and the effect starts once it is lifted."""
    worker.superuser.run(PAUSE, scope=scope, name=name, by=auto.clerk.id)
    refused = worker.refusal(auto)
    worker.superuser.run("delete from pauses")
    assert refused == "paused"
    assert worker.untouched(auto)
    assert worker.refusal(auto) is None


@pytest.mark.parametrize(
    ("scope", "name"), [("workflow", "invoices"), ("action_type", "stock.reserve"), ("provider", "Stock")]
)
def test_a_pause_of_something_else_holds_nothing_back(
    worker: Worker, auto: ReleasedRequest, scope: str, name: str
) -> None:
    """A pause is no wider than it says."""
    worker.superuser.run(PAUSE, scope=scope, name=name, by=auto.clerk.id)
    refused = worker.refusal(auto)
    worker.superuser.run("delete from pauses")
    assert refused is None


def test_nothing_starts_after_a_cancellation(worker: Worker, auto: ReleasedRequest) -> None:
    """A cancellation that was asked for is honoured before the next start."""
    worker.change(auto, "cancel_requested_at = clock_timestamp()")
    assert worker.refusal(auto) == "cancel_requested"
    assert worker.untouched(auto)


def test_nothing_starts_for_a_disabled_initiator(worker: Worker, auto: ReleasedRequest) -> None:
    """Once somebody is disabled, nothing starts on their authority."""
    assert disable_principal(worker.url, auto.clerk.name)
    assert worker.refusal(auto) == "initiator_disabled"
    assert worker.untouched(auto)


@pytest.mark.parametrize("until", ["null", "clock_timestamp()"])
def test_nothing_starts_without_a_fresh_recheck(worker: Worker, auto: ReleasedRequest, until: str) -> None:
    """Policy and preconditions have to have been evaluated within the last half minute."""
    worker.change(auto, f"rechecked_until = {until}")
    assert worker.refusal(auto) == "not_rechecked"
    assert worker.untouched(auto)


def test_shadow_mode_starts_nothing(worker: Worker) -> None:
    """However a shadow request came to `executing`, nothing of it starts."""
    shadow = worker.released(mode="shadow")
    assert worker.refusal(shadow) == "not_live"
    assert worker.untouched(shadow)


def test_what_policy_refuses_does_not_start(worker: Worker) -> None:
    """A refusing assessment stays one, even if the request was moved on."""
    refused = worker.released(decision="refuse")
    assert worker.refusal(refused) == "decision_refuses"
    assert worker.untouched(refused)


def test_what_nobody_assessed_does_not_start(worker: Worker, auto: ReleasedRequest) -> None:
    """An assessment of an earlier round is none."""
    worker.change(auto, "round = 2")
    assert worker.refusal(auto) == "not_live"


def test_a_review_without_an_approval_request_does_not_start(worker: Worker, approved: ReleasedRequest) -> None:
    """Nobody was asked about what stands now."""
    worker.change(approved, "approval_id = null")
    assert worker.refusal(approved) == "no_approval"


def test_every_refusal_that_policy_knows_is_one_the_database_gives() -> None:
    """The list in `policies` and the function's answers are the same."""
    functions = "".join((HERE / "functions" / name).read_text() for name in ("effects.sql", "providers.sql"))
    for refusal in Refusal:
        code = "'effect_'" if refusal.startswith("effect_") else f"'{refusal}'"
        assert code in functions, refusal


def test_a_worker_that_moves_a_request_itself_starts_nothing(superuser: Superuser, database: Database) -> None:
    """The worker may take a legal step, but without a resolution `start_effects` sees no authority in it."""
    asked = superuser.asked(superuser.person("clerk"))
    superuser.run(
        "insert into assessments values (:id, 1, 1, 'medium', 'review', 'live', '[]', '{}', '1', sha256(''))",
        id=asked.id,
    )
    token, parameters_hash = uuid.uuid4(), domain_hash(PARAMETERS, asked.parameters)
    with transaction(engine_for(Duty.WORKER, database.url(WORKER))) as connection:
        connection.exec_driver_sql(
            "update requests set state = 'executing', last_event = 'approved', state_seq = state_seq + 1,"
            f" lease_token = '{token}', lease_until = now() + interval '1 minute',"
            " rechecked_until = now() + interval '1 minute'"
        )
        [started] = start_effects(connection, token, "Payments", [Start(asked.id, 1, parameters_hash, {})])
        assert started.refusal == "not_released"
    superuser.run("insert into approval_resolutions values (:id, 'released', now())", id=asked.approval_id)
    with transaction(engine_for(Duty.WORKER, database.url(WORKER))) as connection:
        [started] = start_effects(connection, token, "Payments", [Start(asked.id, 1, parameters_hash, {})])
        assert started.refusal == "too_few_votes"
