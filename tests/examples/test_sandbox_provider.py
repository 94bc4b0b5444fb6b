"""The sandbox provider over real HTTP: keys, look-up, secrets, faults, and what a kill leaves."""

from __future__ import annotations

import email.utils
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.examples.conftest import REIMBURSE, ROOT, Sandbox


def test_the_same_key_and_body_get_the_first_answer_again(sandbox: Sandbox) -> None:
    """A repeated call makes no second effect and says that it is a repetition."""
    first, second = sandbox.post("same"), sandbox.post("same")
    assert first.json() == {"id": "reimburse-same"}
    assert second.json() == {"id": "reimburse-same", "replayed": True}
    assert (first.status_code, second.status_code, sandbox.effects("same")) == (200, 200, 1)


def test_the_order_of_members_does_not_make_another_body(sandbox: Sandbox) -> None:
    """The same JSON object is the same request."""
    sandbox.post("order", note="a", other="b")
    assert sandbox.post("order", other="b", note="a").json()["replayed"] is True


@pytest.mark.parametrize("changed", [{"amount": {"minor": 4821, "currency": "MYR"}}, {"employee_id": "E-102"}])
def test_a_key_with_another_body_is_refused(sandbox: Sandbox, changed: dict[str, Any]) -> None:
    """A key stands for one effect; using it otherwise is an error that names the key."""
    key = f"reused-{'-'.join(changed)}"
    sandbox.post(key)
    refused = sandbox.post(key, **changed)
    assert refused.status_code == 422
    assert "idempotency" in refused.json()["detail"]
    assert sandbox.effects(key) == 1


def test_a_key_with_another_path_is_refused(sandbox: Sandbox) -> None:
    """Reserving and releasing under one key would be two effects."""
    assert sandbox.post("path", "/budget/reserve").status_code == 200
    assert sandbox.post("path", "/budget/release").status_code == 422


def test_a_call_in_flight_is_not_answered_twice(sandbox: Sandbox) -> None:
    """While the first call is under way, a second one under its key is told to wait."""
    sandbox.faults(delay=0.5)
    with ThreadPoolExecutor(2) as pool:
        answers = sorted(answer.status_code for answer in pool.map(sandbox.post, ["flight", "flight"]))
    assert answers == [200, 409]
    assert sandbox.effects("flight") == 1


def test_an_effect_is_found_by_its_key(sandbox: Sandbox) -> None:
    """Look-up gives the first answer; an unknown key is not found. Keys may hold colons, spaces and slashes."""
    sandbox.post("expenses:1 / 2:undo")
    assert sandbox.find("expenses%3A1%20%2F%202%3Aundo").json() == {"id": "reimburse-expenses:1 / 2:undo"}
    assert sandbox.find("never-sent").status_code == 404


def test_each_service_has_its_own_secret(sandbox: Sandbox) -> None:
    """The budget's token does not open the payment, neither to pay nor to look up, and no service opens the ledger."""
    assert sandbox.post("secret", token="budget-token").status_code == 401
    assert sandbox.post("secret", token="admin-token").status_code == 401
    assert sandbox.effects("secret") == 0
    sandbox.post("secret")
    assert sandbox.find("secret", token="budget-token").status_code == 401
    assert sandbox.find("secret", token="wrong").status_code == 401
    assert "rows" not in sandbox.ledger(token="expense-token")


@pytest.mark.parametrize(
    ("headers", "body"), [({}, b"{}"), ({"Idempotency-Key": "bad"}, b"[1]"), ({"Idempotency-Key": "bad"}, b"{")]
)
def test_a_call_without_key_or_object_is_refused(sandbox: Sandbox, headers: dict[str, str], body: bytes) -> None:
    """Nothing is done for a call that could not be told from its repetition."""
    url, authorised = sandbox.url + REIMBURSE, {"Authorization": "Bearer expense-token"}
    assert httpx.post(url, content=body, headers=authorised | headers, trust_env=False).status_code == 400


@pytest.mark.parametrize("fault", ["fail_after_effect", "wrong_answer"])
def test_the_effect_can_happen_behind_a_bad_answer(sandbox: Sandbox, fault: str) -> None:
    """The answer tells nothing or the wrong thing, as often as asked; the ledger and the look-up tell the truth."""
    sandbox.faults(**{fault: 1})
    answer = sandbox.post(fault)
    assert answer.status_code == 500 or not answer.text.startswith("{")
    assert sandbox.find(fault).json() == {"id": f"reimburse-{fault}"}
    assert sandbox.post(fault).json()["replayed"] is True
    assert sandbox.effects(fault) == 1


def test_the_connection_can_break_after_the_effect(sandbox: Sandbox) -> None:
    """The client learns nothing, the effect is there."""
    sandbox.faults(drop_after_effect=1)
    with pytest.raises(httpx.RemoteProtocolError):
        sandbox.post("dropped")
    assert sandbox.effects("dropped") == 1


def test_a_failure_before_the_effect_leaves_none(sandbox: Sandbox) -> None:
    """A 500 does not say whether anything happened; here nothing did."""
    sandbox.faults(fail_before_effect=1)
    assert sandbox.post("before").status_code == 500
    assert sandbox.find("before").status_code == 404
    assert sandbox.post("before").json() == {"id": "reimburse-before"}


def test_a_rate_limit_names_the_time_in_seconds_or_as_a_date(sandbox: Sandbox) -> None:
    """Both forms of Retry-After; nothing was done."""
    sandbox.faults(rate_limit=1, retry_after=7)
    assert sandbox.post("limited").headers["Retry-After"] == "7"
    sandbox.faults(rate_limit=1, retry_after=60, retry_after_date=True)
    answer = sandbox.post("limited")
    due, now = (email.utils.parsedate_to_datetime(answer.headers[name]) for name in ("Retry-After", "Date"))
    assert answer.status_code == 429
    assert 58 <= (due - now).total_seconds() <= 62
    assert sandbox.effects("limited") == 0


def test_a_look_up_can_lag_behind(sandbox: Sandbox) -> None:
    """An effect that is not found yet is not absent."""
    sandbox.faults(lookup_lag=1)
    sandbox.post("lag")
    assert sandbox.find("lag").status_code == 404
    deadline = time.monotonic() + 10
    while sandbox.find("lag").status_code == 404 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sandbox.find("lag").status_code == 200


def test_a_business_refusal_is_final_for_its_key(sandbox: Sandbox) -> None:
    """Declined over an amount: no effect, the same answer again, and the look-up names the refusal."""
    sandbox.faults(decline_over=4000)
    assert (sandbox.post("declined").status_code, sandbox.post("small", amount={"minor": 4000}).status_code) == (
        402,
        200,
    )
    sandbox.faults()
    assert sandbox.post("declined").json() == {"code": "declined", "detail": "over the limit", "replayed": True}
    assert sandbox.find("declined").json() == {"refused": "declined", "detail": "over the limit"}
    assert sandbox.effects("declined") == 0


def test_a_provider_that_forgets_keys_shows_the_duplicates(sandbox: Sandbox) -> None:
    """The ledger counts effects, not keys: what happened twice is seen twice."""
    sandbox.faults(forget_keys=True)
    sandbox.post("twice")
    sandbox.post("twice")
    assert sandbox.ledger()["duplicates"] == {"twice": 2}


def test_faults_can_be_limited_to_a_path(sandbox: Sandbox) -> None:
    """Other services go on as before."""
    sandbox.faults(fail_before_effect=1, paths=[REIMBURSE])
    assert sandbox.post("elsewhere", "/budget/reserve").status_code == 200
    assert sandbox.post("here").status_code == 500


@pytest.mark.parametrize(
    "fault", [{"tea": 1}, {"delay": "long"}, {"rate_limit": True}, {"rate_limit": 1.5}, {"paths": "/x"}]
)
def test_a_fault_that_does_not_exist_is_refused(sandbox: Sandbox, fault: dict[str, Any]) -> None:
    """A misspelt fault must not look like a provider that behaves."""
    assert sandbox.put_faults(fault).status_code == 400


def test_a_kill_forgets_no_effect_and_no_key(tmp_path: Path) -> None:
    """What was answered before SIGKILL is known after the restart, and is not done again."""
    provider = Sandbox(tmp_path / "ledger.db")
    try:
        keys = [f"kill-{number}" for number in range(50)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(provider.post, keys))
        provider.kill()
        provider.start()
        assert provider.ledger()["effects"] == {REIMBURSE: 50}
        assert all(provider.post(key).json().get("replayed") for key in keys)
        assert provider.ledger()["effects"] == {REIMBURSE: 50}
        assert provider.ledger()["calls"] == 100
        assert provider.ledger()["replays"] == 50
    finally:
        provider.close()


def test_it_does_not_start_without_its_secrets(tmp_path: Path) -> None:
    """There are no default tokens; the message names the variables to set."""
    command = [
        sys.executable,
        "-m",
        "examples.expenses.sandbox_provider",
        "--port",
        "1",
        "--ledger",
        str(tmp_path / "x.db"),
    ]
    told = subprocess.run(
        command, cwd=ROOT, env={"PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=False
    )
    assert told.returncode == 2
    assert "set SANDBOX_ADMIN_TOKEN, SANDBOX_BUDGET_TOKEN" in told.stderr
