"""`failsafe supply`, as people type it, and where they learn of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.approvals import location
from tests.console.conftest import Terminal
from tests.operator.supplying import Model, Refunds
from tests.ops import toy
from tests.ops.passes import Shop

WHERE = ("-m", "tests.approvals.location:workflow")
WHY = ("--reason", "the customer called")


@pytest.fixture
def lacking(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop in which one request lacks its amount, with its definition where the commands look."""
    monkeypatch.setattr(location, "workflow", shop.define(request=Refunds, extractor=Model()), raising=False)
    shop.queue({"one": {"order_id": "A1"}})
    shop.run()
    return shop


@pytest.fixture
def terminal(lacking: Shop, tmp_path: Path) -> Terminal:
    """A terminal on the shop's store."""
    return Terminal(lacking.url, tmp_path)


def test_show_names_the_command_and_the_command_does_it(lacking: Shop, terminal: Terminal) -> None:
    """What is added is said, not repeated; afterwards `show` says who added it."""
    shown = terminal.said("show", "one")
    assert f"failsafe supply {lacking.request('one').id} --field NAME=VALUE --reason WHY" in shown
    said = terminal.said("supply", "one", "--field", "text=TOTAL 20.00 EUR", *WHY, *WHERE, token=lacking.clerk)
    assert said.strip() == "one: text added, revision 2 begins; the next run takes it up"
    lacking.run()
    assert lacking.states() == {"one": "completed"}
    account = terminal.said("show", "one")
    assert "supplied by shop: text, and so revision 2 began\n" in account
    assert '"text": "TOTAL 20.00 EUR"' in account
    assert "failsafe supply" not in account
    assert terminal.json("show", "one")["inputs"][0]["fields"] == ["text"]


def test_show_names_the_command_of_what_was_asked_before_it_needed_review(lacking: Shop, terminal: Terminal) -> None:
    """Beneath the document of the question that is over."""
    lacking.queue({"two": {"order_id": "A2", "text": "TOTAL 80.00 EUR"}})
    lacking.run()
    assert "failsafe supply" not in terminal.said("show", "two")
    lacking.execute(
        "update requests set state = 'needs_review', last_event = 'review_needed', state_seq = state_seq + 1"
        " where operation_id = 'two'"
    )
    assert f"failsafe supply {lacking.request('two').id} --field" in terminal.said("show", "two")
    terminal.said("supply", "two", "--field", "count=3", *WHY, *WHERE, token=lacking.clerk)
    lacking.run()
    assert lacking.states()["two"] == "awaiting_approval"
    outcomes = lacking.rows("select v.outcome from approvals_v v order by v.opened_at")
    assert [row.outcome for row in outcomes] == ["voided", "open"]


def test_a_file_gives_any_value(lacking: Shop, terminal: Terminal, tmp_path: Path) -> None:
    """As JSON, with a byte order mark or without; programs get JSON."""
    fields = tmp_path / "fields.json"
    fields.write_text('{"text": "TOTAL 20.00 EUR", "count": 3}', encoding="utf-8-sig")
    operator = toy.principal(lacking.url, "olga", ["operator"], kind="human")
    made = terminal.json("supply", "one", "--file", fields, *WHY, *WHERE, token=operator)
    assert made == {"request_id": str(lacking.request("one").id), "revision": 2, "fields": ["count", "text"]}
    assert json.loads(lacking.row("select payload from request_inputs").payload)["count"] == 3


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["--field", "text"],
        ["--field", "=x"],
        ["--field", "text=a", "--field", "text=b"],
        ["--file", "/no/such/file"],
    ],
)
def test_input_that_says_nothing_is_refused(lacking: Shop, terminal: Terminal, given: list[str]) -> None:
    """Before anything is asked of the store."""
    assert terminal.run("supply", "one", *given, *WHY, *WHERE, token=lacking.clerk).exit_code == 2


def test_a_file_or_fields_but_not_both(lacking: Shop, terminal: Terminal, tmp_path: Path) -> None:
    """So that it is never in doubt which of the two counts."""
    (tmp_path / "fields.json").write_text("{}")
    given = ("--file", tmp_path / "fields.json", "--field", "text=a")
    assert terminal.run("supply", "one", *given, *WHY, *WHERE, token=lacking.clerk).exit_code == 2


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("order_id=B7", "order_id has a value already, and input only adds"),
        ("amount=20", "amount: Extra inputs are not permitted; Refunds has the fields order_id, text, say, note"),
        ("count=many", "count: Input should be a valid integer"),
        ("text=\udcff", "text holds half of a character"),
    ],
)
def test_what_cannot_be_added_is_one_line(lacking: Shop, terminal: Terminal, field: str, said: str) -> None:
    """It names the field and says what is wrong with it."""
    refused = terminal.run("supply", "one", "--field", field, *WHY, *WHERE, token=lacking.clerk)
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert said in refused.stderr


def test_who_may_not_and_what_cannot_is_one_line(lacking: Shop, terminal: Terminal) -> None:
    """A stranger, a name that means nothing, a definition that is not given."""
    stranger = toy.principal(lacking.url, "carl", ["clerk"], kind="human")
    for name, token, where, said in (
        ("one", stranger, WHERE, "carl may not supply input to this request"),
        ("two", lacking.clerk, WHERE, "no request, approval or operation_id is called 'two'"),
        ("one", "fst_x", WHERE, "unknown or disabled credential"),
        ("one", lacking.clerk, ("-m", "tests.store.workflow:extract"), "no workflow 'refunds'"),
    ):
        refused = terminal.run("supply", name, "--field", "text=TOTAL 20.00 EUR", *WHY, *where, token=token)
        assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
        assert said in refused.stderr
    assert lacking.states() == {"one": "needs_review"}
