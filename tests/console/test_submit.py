"""`failsafe submit`: good rows go in, bad rows are named, and however often it is stopped nothing is doubled."""

from __future__ import annotations

import gzip
import json
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.console.conftest import Terminal
from tests.store.requests import Superuser


def line(operation_id: str, amount: str = "20.00 EUR", **more: str) -> str:
    """A good line."""
    return json.dumps({"operation_id": operation_id, "payload": {"order_id": "1", "amount": amount, **more}})


class Counter:
    """Hands files in as the clerk."""

    def __init__(self, terminal: Terminal, superuser: Superuser) -> None:
        self.terminal, self.superuser = terminal, superuser
        self.token = superuser.person("clerk").token

    def file(self, lines: Iterable[str], name: str = "requests.jsonl") -> Path:
        """A file of these lines."""
        file = self.terminal.home / name
        file.write_text("".join(f"{one}\n" for one in lines))
        return file

    def submit(self, file: Path, exit_code: int = 0) -> Any:
        """What `submit --json` prints."""
        return self.terminal.json("submit", "refunds", file, token=self.token, exit_code=exit_code)

    def stored(self) -> Any:
        """How many requests there are."""
        return self.superuser.value("select count(*) from requests")


@pytest.fixture
def counter(terminal: Terminal, superuser: Superuser) -> Counter:
    """Where files are handed in."""
    return Counter(terminal, superuser)


def rejects(file: Path) -> list[dict[str, Any]]:
    """What stands in a file's rejects file."""
    return [json.loads(one) for one in file.with_name(f"{file.name}.rejects.jsonl").read_text().splitlines()]


def test_good_rows_go_in_and_bad_ones_are_named(counter: Counter) -> None:
    """Each bad line is told with its number and reason, and written to the rejects file with the row itself."""
    wrong = {"operation_id": "d", "payload": {"order_id": "1"}}
    file = counter.file(
        [line("a"), "{broken", "", json.dumps(wrong), "[]", line("e"), '{"operation_id": "f", "payload": 3}']
    )
    result = counter.terminal.run("submit", "refunds", file, token=counter.token)
    assert result.exit_code == 1
    assert "6 rows: 2 accepted, 0 were in already, 4 rejected" in result.stdout
    assert "line 4: payload.amount Field required" in result.stderr
    assert counter.stored() == 2
    assert [one["line"] for one in rejects(file)] == [2, 4, 5, 7]
    assert [one["row"] for one in rejects(file)] == ["{broken", wrong, "[]", {"operation_id": "f", "payload": 3}]
    assert all(one["reason"] for one in rejects(file))


def test_a_corrected_file_goes_in_whole(counter: Counter) -> None:
    """The second time the good rows are replays, the corrected one goes in, and no rejects file is left."""
    file = counter.file([line("a"), "{broken"])
    counter.submit(file, exit_code=1)
    again = counter.submit(counter.file([line("a"), line("b")]))
    assert (again["accepted"], again["replayed"], again["rejected"], again["rejects_file"]) == (1, 1, 0, None)
    assert list(file.parent.glob("*.rejects.jsonl")) == []
    assert counter.stored() == 2


def test_a_conflict_is_a_rejected_row(counter: Counter) -> None:
    """Another payload under a used id is refused by line, and counted apart."""
    counter.submit(counter.file([line("a")]))
    said = counter.submit(counter.file([line("a", amount="9.00 EUR")]), exit_code=1)
    assert (said["accepted"], said["rejected"], said["conflicts"]) == (0, 1, 1)


def test_the_payload_is_stored_as_it_stands_in_the_line(counter: Counter) -> None:
    """Not parsed and written anew: white space, escapes and the order of keys are those of the file."""
    payload = '{ "amount" : "20.00 EUR","message":"caf\\u00e9 \\u0000", "order_id":"1"}'
    counter.submit(counter.file([f'  {{ "payload" :\t{payload} , "subject":"E7", "operation_id" : "a" }}']))
    assert counter.superuser.value("select payload from requests") == payload.encode()
    assert counter.superuser.value("select subject from requests") == "E7"


@pytest.mark.parametrize("name", ["requests.jsonl.gz", "requests.csv", "requests.csv.gz"])
def test_files_may_be_csv_or_gzipped(counter: Counter, name: str) -> None:
    """All forms mean the same rows."""
    rows = (
        [line("a"), line("b")]
        if "jsonl" in name
        else ["operation_id,amount,order_id", "a,20.00 EUR,1", "b,20.00 EUR,1"]
    )
    file = counter.terminal.home / name
    content = "\n".join(rows).encode()
    file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert counter.submit(file)["accepted"] == 2
    assert counter.submit(counter.file([line("a"), line("b")]))["replayed"] == 2


def test_a_csv_row_is_told_by_the_line_it_begins_on(counter: Counter) -> None:
    """Quoted line breaks count; an empty cell is a field left out; a short row or broken UTF-8 is refused."""
    file = counter.terminal.home / "requests.csv"
    file.write_bytes(
        b"\xef\xbb\xbfoperation_id,subject,order_id,amount,message\n"
        b'a,E7,1,20.00 EUR,"two\nlines"\n'
        b"b,,1,,\n"
        b"c,E7\n"
        b"d,,1,20.00 EUR,caf\xe9\n"
        b"e,,1,20.00 EUR,\n"
    )
    assert counter.submit(file, exit_code=1)["accepted"] == 2
    assert [(one["line"], one["reason"].split()[0]) for one in rejects(file)] == [
        (4, "payload.amount"),
        (5, "has"),
        (6, "payload"),
    ]
    stored = counter.superuser.value("select convert_from(payload, 'UTF8') from requests where operation_id = 'a'")
    assert json.loads(str(stored)) == {"order_id": "1", "amount": "20.00 EUR", "message": "two\nlines"}


@pytest.mark.parametrize(
    ("name", "content"),
    [("requests.txt", ""), ("requests.csv", "id,amount\n1,2\n"), ("requests.csv", "operation_id,a,a\n1,2,3\n")],
)
def test_a_file_of_another_form_is_wrong_usage(counter: Counter, name: str, content: str) -> None:
    """Exit code 2, nothing stored."""
    file = counter.terminal.home / name
    file.write_text(content)
    assert counter.terminal.run("submit", "refunds", file, token=counter.token).exit_code == 2
    assert counter.terminal.run("submit", "refunds", file.with_name("none.jsonl"), token=counter.token).exit_code == 2
    assert counter.stored() == 0


def test_a_wrong_token_is_one_line(counter: Counter) -> None:
    """Nothing is stored and no row is blamed."""
    result = counter.terminal.run("submit", "refunds", counter.file([line("a")]), token="fst_wrong")
    assert (result.exit_code, result.stderr) == (1, "failsafe: unknown or disabled credential\n")
    assert counter.stored() == 0


def test_a_workflow_is_found_by_name(counter: Counter) -> None:
    """By module, by module:variable or FAILSAFE_WORKFLOWS; otherwise the message says what there is."""
    file = counter.file([line("a")])

    def submit(name: str, *options: str, **environment: str) -> tuple[int, str]:
        result = counter.terminal.run("submit", name, file, *options, token=counter.token, **environment)
        return result.exit_code, result.stderr

    assert submit("refunds", "-m", "tests.store.workflow", FAILSAFE_WORKFLOWS="") == (0, "")
    assert submit("refunds", "-m", "tests.store.workflow:refunds", FAILSAFE_WORKFLOWS="") == (0, "")
    assert submit("other") == (1, "failsafe: no workflow 'other' in tests.store.workflow; there is: refunds\n")
    assert submit("refunds", FAILSAFE_WORKFLOWS="")[1].startswith("failsafe: say where the workflow is defined")
    assert "cannot be imported" in submit("refunds", "-m", "tests.nowhere")[1]


def wait_for_rows(counter: Counter, at_least: int) -> None:
    """Return when so many rows are in."""
    give_up = time.monotonic() + 60
    while counter.stored() < at_least:
        assert time.monotonic() < give_up, "no row came in"
        time.sleep(0.02)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_stopped_midway_and_run_again_nothing_is_doubled(counter: Counter, stop: signal.Signals) -> None:
    """Whatever is in stays, the rest follows, each row once; Ctrl-C ends without a traceback."""
    count = 8000
    file = counter.file(line(f"order-{number}", message="x" * 2000) for number in range(count))
    process = counter.terminal.start("submit", "refunds", file, token=counter.token)
    try:
        wait_for_rows(counter, 500)
        process.send_signal(stop)
        stderr = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()
    before = counter.stored()
    assert 500 <= before < count
    if stop is signal.SIGINT:
        assert process.returncode == 130
        assert "Run it again: nothing is doubled." in stderr
        assert "Traceback" not in stderr
    again = counter.submit(file)
    assert (again["accepted"], again["replayed"]) == (count - before, before)
    assert counter.stored() == count
    assert counter.superuser.value("select count(*) from audit_events where type = 'request.received'") == count


def test_a_damaged_file_is_one_line(counter: Counter) -> None:
    """A gzip that breaks off says so; mended and run again, each row is in once."""
    file = counter.terminal.home / "requests.jsonl.gz"
    whole = gzip.compress("".join(line(f"order-{number}") + "\n" for number in range(3000)).encode())
    file.write_bytes(whole[: len(whole) // 2])
    result = counter.terminal.run("submit", "refunds", file, token=counter.token)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "cannot be read to its end" in result.stderr
    file.write_bytes(whole)
    counter.submit(file)
    assert counter.stored() == 3000


def test_a_byte_order_mark_is_no_problem(counter: Counter) -> None:
    """Files saved by an editor that writes one go in all the same."""
    file = counter.terminal.home / "requests.jsonl"
    file.write_text(line("a"), encoding="utf-8-sig")
    assert counter.submit(file)["accepted"] == 1
