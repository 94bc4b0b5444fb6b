"""A vote that releases something is told to Dagster at once; nothing rests on it."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import httpx
import pytest

from console.dagster_web import VARIABLE, DagsterWeb, RunNotStarted
from console.desk.application import application
from console.knock import Knock
from policies.errors import DefinitionError
from tests.console.conftest import Terminal
from tests.desk.conftest import Visitor, served
from tests.desk.dagster_door import JOB, Door, door
from tests.postgres import Database
from tests.sensors.conftest import Location
from tests.store.requests import AskedRequest, Person, Superuser

NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def dagster() -> Iterator[Door]:
    """Dagster's web server, as far as the desk speaks to it."""
    with door() as found:
        yield found


@pytest.fixture
def knock(database: Database, dagster: Door) -> Knock:
    """Knocks there, once a second at most for one batch."""
    return Knock(database.url(), DagsterWeb(dagster.url), pause_seconds=1)


@pytest.fixture
def desk_url(database: Database, knock: Knock) -> Iterator[str]:
    """The URL of a desk that knocks."""
    with served(application(database.url(), {}, loopback=True, released=knock.released)) as url:
        yield url


def batch(superuser: Superuser, asked: AskedRequest) -> str:
    """The batch of a request."""
    return str(superuser.value("select batch_key from requests where id = :id", id=asked.id))


def test_a_releasing_vote_starts_a_run_on_its_batch(
    visitor: Visitor, superuser: Superuser, clerk: Person, lead: Person, dagster: Door
) -> None:
    """The vote that makes the number full does; one before it, a denial and a repeated click start nothing."""
    second = superuser.person("second", ["support_lead"])
    asked, denied = superuser.asked(clerk, quorum=2), superuser.asked(clerk, "order-2")
    visitor.sign_in(lead)
    assert visitor.vote(asked, "approve").status_code == 303
    assert visitor.vote(denied, "deny", "no").status_code == 303
    time.sleep(0.3)
    assert not dagster.connections
    visitor.sign_in(second)
    visitor.vote(asked, "approve")
    dagster.wait_for(1)
    visitor.vote(asked, "approve")
    time.sleep(1.5)
    [run] = dagster.started
    assert run["selector"] == {
        "repositoryLocationName": "the_location",
        "repositoryName": "__repository__",
        "jobName": JOB,
    }
    assert {"key": "dagster/partition", "value": batch(superuser, asked)} in run["executionMetadata"]["tags"]


def test_its_run_is_the_one_that_the_sensor_would_have_asked_for(
    database: Database, tmp_path: Path, dagster: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same job, same tags but for the sensor's name, same empty config."""
    monkeypatch.setenv("FAILSAFE_DATABASE_URL", database.url())
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    with dg.DagsterInstance.ephemeral() as instance:
        location = Location(database, tmp_path, instance)
        location.released(today)
        [request] = location.tick("approvals_landed")[0]
    DagsterWeb(dagster.url).start_run("refunds", today)
    [run] = dagster.started
    assert run["selector"]["jobName"] == request.job_name
    tags = {one["key"]: one["value"] for one in run["executionMetadata"]["tags"]}
    assert tags | {"dagster/sensor_name": "approvals_landed"} == request.tags
    assert run["runConfigData"] == request.run_config == {}


def test_many_votes_cost_few_runs(database: Database, superuser: Superuser, clerk: Person, dagster: Door) -> None:
    """Twenty in a moment: one run at once, one for what came after it, and none for nothing."""
    knock = Knock(database.url(), DagsterWeb(dagster.url), pause_seconds=2)
    for one in [superuser.asked(clerk, f"order-{number}") for number in range(20)]:
        knock.released(one.approval_id)
    dagster.wait_for(2)
    time.sleep(2.5)
    assert len(dagster.started) == 2


def test_what_was_released_last_is_never_left_out(
    knock: Knock, superuser: Superuser, clerk: Person, dagster: Door
) -> None:
    """The later run starts after the last vote, so that it cannot have missed it."""
    first, last = superuser.asked(clerk, "order-1"), superuser.asked(clerk, "order-2")
    knock.released(first.approval_id)
    dagster.wait_for(1)
    knock.released(last.approval_id)
    dagster.wait_for(2)


def test_batches_do_not_wait_for_each_other(knock: Knock, superuser: Superuser, clerk: Person, dagster: Door) -> None:
    """Six batches in a moment are six runs."""
    for number in range(6):
        asked = superuser.asked(clerk, f"order-{number}")
        superuser.run("update requests set batch_key = :key where id = :id", key=f"2026-01-0{number + 1}", id=asked.id)
        knock.released(asked.approval_id)
    dagster.wait_for(6)
    assert len({str(run) for run in dagster.started}) == 6


def test_a_run_that_is_about_to_start_will_do(
    knock: Knock, superuser: Superuser, asked: AskedRequest, dagster: Door
) -> None:
    """It is asked for by the batch's tag, and no other is started."""
    dagster.live = True
    knock.released(asked.approval_id)
    give_up = time.monotonic() + 10
    while not dagster.asked and time.monotonic() < give_up:
        time.sleep(0.01)
    time.sleep(0.2)
    assert dagster.asked == [{"failsafe/batch": f"refunds/{batch(superuser, asked)}"}]
    assert not dagster.started


@pytest.mark.parametrize("trouble", ["nobody there", "slow", "error", "redirect", "read-only", "unknown job"])
def test_a_knock_that_fails_does_not_touch_the_vote(
    database: Database,
    superuser: Superuser,
    clerk: Person,
    lead: Person,
    dagster: Door,
    caplog: pytest.LogCaptureFixture,
    trouble: str,
) -> None:
    """The vote is counted and answered at once; one line says that the sensor is relied on, however often it fails."""
    dagster.delay = 4 if trouble == "slow" else 0
    dagster.status = {"error": 500, "redirect": 307}.get(trouble, 200)
    dagster.launch = "UnauthorizedError" if trouble == "read-only" else "LaunchRunSuccess"
    if trouble == "unknown job":
        dagster.jobs = {}
    web = DagsterWeb(NOBODY if trouble == "nobody there" else dagster.url)
    knock = Knock(database.url(), web, pause_seconds=0.05)
    asked = [superuser.asked(clerk, f"order-{number}") for number in range(3)]
    with (
        served(application(database.url(), {}, loopback=True, released=knock.released)) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        visitor = Visitor(client)
        visitor.sign_in(lead)
        for one in asked:
            began = time.monotonic()
            assert visitor.vote(one, "approve").status_code == 303
            assert time.monotonic() - began < 3.5, "it did not wait for Dagster"
            assert superuser.state(one.id) == "executing"
            time.sleep(0.2)
    if trouble == "slow":
        dagster.delay = 0
        dagster.wait_for(1)
        time.sleep(0.5)
    else:
        said = [record for record in caplog.records if record.name == "console.knock"]
        assert [record.levelno for record in said] == [logging.WARNING]
        assert "its sensor finds it" in said[0].getMessage()
        assert not dagster.started
    if trouble == "redirect":
        assert dagster.connections == len(asked), "nobody went where an answer pointed"


def test_it_says_so_again_only_after_it_worked(
    database: Database, superuser: Superuser, clerk: Person, dagster: Door, caplog: pytest.LogCaptureFixture
) -> None:
    """A second outage is news; every vote during one is not."""
    knock = Knock(database.url(), DagsterWeb(dagster.url), pause_seconds=0)
    for number, status in enumerate((500, 500, 200, 500)):
        dagster.status = status
        before = dagster.connections
        knock.released(superuser.asked(clerk, f"order-{number}").approval_id)
        give_up = time.monotonic() + 10
        while dagster.connections == before and time.monotonic() < give_up:
            time.sleep(0.01)
        time.sleep(0.3)
    assert len(caplog.records) == 2


def test_an_approval_that_is_not_there_does_not_end_it(
    knock: Knock, superuser: Superuser, asked: AskedRequest, dagster: Door
) -> None:
    """The next vote is told as ever."""
    knock.released(uuid.uuid4())
    knock.released(asked.approval_id)
    dagster.wait_for(1)


def test_a_job_that_moved_is_found_again(dagster: Door) -> None:
    """Its code location is looked up once, and anew after a run could not be started there."""
    web = DagsterWeb(dagster.url)
    assert web.start_run("refunds", "2026-01-01")
    dagster.jobs, dagster.launch = {"new_location": [JOB]}, "PipelineNotFoundError"
    with pytest.raises(RunNotStarted):
        web.start_run("refunds", "2026-01-01")
    dagster.launch = "LaunchRunSuccess"
    assert web.start_run("refunds", "2026-01-01")
    places = [run["selector"]["repositoryLocationName"] for run in dagster.started]
    assert places == ["the_location", "new_location"]


@pytest.mark.parametrize(
    "url", ["ftp://dagster", "file:///etc/passwd", "dagster:3000", "http://user:geheim@dagster", "http://[::1"]
)
def test_an_address_that_is_none_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Before anybody votes, naming the variable and never the password in it."""
    monkeypatch.setenv(VARIABLE, url)
    with pytest.raises(DefinitionError, match=VARIABLE) as refused:
        DagsterWeb.from_environment()
    assert "geheim" not in str(refused.value)


def test_without_an_address_nobody_knocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an option."""
    monkeypatch.delenv(VARIABLE, raising=False)
    assert DagsterWeb.from_environment() is None


@pytest.mark.parametrize("reachable", [True, False])
def test_a_vote_on_the_command_line_knocks_as_well(
    database: Database,
    tmp_path: Path,
    superuser: Superuser,
    asked: AskedRequest,
    lead: Person,
    dagster: Door,
    caplog: pytest.LogCaptureFixture,
    reachable: bool,
) -> None:
    """And ends well where nobody hears it."""
    terminal = Terminal(database.url(), tmp_path)
    arguments = ("approve", asked.id, "--hash", asked.review_hash.hex())
    address = {VARIABLE: dagster.url if reachable else NOBODY}
    result = terminal.run(*arguments, token=lead.token, **address)
    assert result.exit_code == 0
    assert "released" in result.stdout
    assert superuser.state(asked.id) == "executing"
    assert len(dagster.started) == reachable
    assert len(caplog.records) == (not reachable)
