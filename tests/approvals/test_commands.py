"""`failsafe delegate`, `delegations`, `principals set-limits` and `edit`, as people type them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from policies.errors import NotPermitted
from resources.store.inbox import find_asked
from resources.store.votes import cast_vote, sign_in
from tests.console.conftest import Terminal
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.postgres import Database
from tests.store.requests import Person, Superuser


@pytest.fixture
def terminal(database: Database, tmp_path: Path) -> Terminal:
    """A terminal on this test's database."""
    return Terminal(database.url(), tmp_path)


@pytest.fixture
def superuser(database: Database) -> Superuser:
    """A writer that no duty binds."""
    return Superuser(database)


def in_an_hour() -> str:
    """A time with its zone."""
    return (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="seconds")


class TestDelegation:
    """Lending a role, seeing it, taking it back."""

    @pytest.fixture
    def lead(self, superuser: Superuser) -> Person:
        """Who lends."""
        return superuser.person("lead", ["support_lead"])

    @pytest.fixture
    def deputy(self, superuser: Superuser) -> Person:
        """Who borrows."""
        return superuser.person("deputy")

    def test_a_role_is_lent_listed_and_taken_back(self, terminal: Terminal, lead: Person, deputy: Person) -> None:
        """The line that confirms it says how to end it."""
        said = terminal.said(
            "delegate", "support_lead", "deputy", "--until", in_an_hour(), "--reason", "leave", token=lead.token
        )
        assert "deputy may act as support_lead in your place until" in said
        [listed] = terminal.json("delegations", "list", token=deputy.token)
        assert (listed["lender"], listed["borrower"], listed["role"], listed["in_force"]) == (
            "lead", "deputy", "support_lead", True,
        )  # fmt: skip
        assert f"failsafe delegations revoke {listed['id']}" in said
        assert "in force" in terminal.said("delegations", "list", token=lead.token)
        assert terminal.run("delegations", "revoke", listed["id"], token=deputy.token).exit_code == 1
        assert terminal.json("delegations", "revoke", listed["id"], token=lead.token)["revoked"] is True
        assert "taken back" in terminal.said("delegations", "list", token=lead.token)
        assert terminal.run("delegations", "revoke", listed["id"], token=lead.token).exit_code == 1

    @pytest.mark.parametrize("until", ["2026-12-01T18:00", "2026-12-01", "tomorrow", "", "18:00"])
    def test_a_time_without_zone_is_refused(self, terminal: Terminal, lead: Person, deputy: Person, until: str) -> None:
        """Before anything is asked of the store, and saying what to write."""
        result = terminal.run(
            "delegate", "support_lead", "deputy", "--until", until, "--reason", "leave", token=lead.token
        )
        assert result.exit_code == 2
        assert "zone" in result.output or "2026-11-30T18:00+01:00" in result.output
        assert terminal.json("delegations", "list", token=lead.token) == []

    def test_what_cannot_be_lent_is_one_line(self, terminal: Terminal, lead: Person, deputy: Person) -> None:
        """A role one has not, a person who is not there, a time that is over."""
        past = "2020-01-01T00:00+00:00"
        for role, to, until in (
            ("finance", "deputy", in_an_hour()),
            ("support_lead", "nobody", in_an_hour()),
            ("support_lead", "lead", in_an_hour()),
            ("support_lead", "deputy", past),
        ):
            result = terminal.run("delegate", role, to, "--until", until, "--reason", "leave", token=lead.token)
            assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


class TestLimits:
    """Bounding what a person decides on."""

    def test_limits_are_set_shown_replaced_and_lifted(self, terminal: Terminal, superuser: Superuser) -> None:
        """Amounts as people write them; whole minor units in the store."""
        superuser.person("lead")
        terminal.said(
            "principals", "set-limits", "lead", "order.refund=500.00EUR", "order.refund=40000 JPY", "customer.tell"
        )
        [listed] = terminal.json("principals", "list")
        assert listed["limits"] == {"order.refund": {"EUR": 50_000, "JPY": 40_000}, "customer.tell": {}}
        assert "500.00 EUR, 40000 JPY" in terminal.said("principals", "list")
        terminal.said("principals", "set-limits", "lead", "order.pay=1EUR")
        assert terminal.json("principals", "list")[0]["limits"] == {"order.pay": {"EUR": 100}}
        terminal.said("principals", "set-limits", "lead", "--lift")
        assert terminal.json("principals", "list")[0]["limits"] is None

    @pytest.mark.parametrize(
        "given",
        [
            [],
            ["--lift", "order.refund=5EUR"],
            ["order.refund="],
            ["order.refund=much"],
            ["order.refund=500"],
            ["order.refund=5.001EUR"],
            ["order.refund=5EUR", "order.refund=6EUR"],
            ["=5EUR"],
            ["order.refund=-5EUR"],
        ],
    )
    def test_a_limit_that_is_none_is_refused(self, terminal: Terminal, superuser: Superuser, given: list[str]) -> None:
        """And the limits stay as they were."""
        superuser.person("lead")
        assert terminal.run("principals", "set-limits", "lead", *given).exit_code == 2
        assert terminal.json("principals", "list")[0]["limits"] is None

    def test_limits_of_nobody(self, terminal: Terminal) -> None:
        """An unknown name is one line."""
        assert terminal.run("principals", "set-limits", "nobody", "order.refund=5EUR").exit_code == 1


class TestEdit:
    """Changing what is asked."""

    @pytest.fixture
    def asked(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
        """A request that waits, and a lead at the keyboard."""
        from tests.approvals import location

        monkeypatch.setattr(location, "workflow", shop.workflow, raising=False)
        shop.queue({"one": refund("80.00", text="TOTAL 80.00 EUR\nkept: 60.00 EUR")})
        shop.run()
        return shop

    def edit(self, terminal: Terminal, token: str, *arguments: str, review_hash: str | None = None) -> tuple[int, str]:
        """Type the command; exit code and everything it said."""
        shown = review_hash or terminal.json("show", "one")["review_hash"]
        result = terminal.run(
            "edit", "one", *arguments, "--hash", shown[:16], "--reason", "one was kept",
            "-m", "tests.approvals.location:workflow", token=token,
        )  # fmt: skip
        return result.exit_code, result.output

    def test_an_edit_becomes_the_next_revision(self, asked: Shop, terminal: Terminal) -> None:
        """Judged by the next run, and decided by somebody else."""
        edda = toy.principal(asked.url, "edda", ["lead"], kind="human")
        code, said = self.edit(
            terminal,
            edda,
            "--set",
            "order.refund.amount=60.00 EUR",
            "--quote",
            "order.refund.amount=text:kept: 60.00 EUR",
        )
        assert (code, said.strip()) == (0, "one: revision 2; it is judged anew, and somebody else decides")
        asked.run()
        found = find_asked(asked.url, "one")
        assert found is not None
        document = json.loads(found.document)
        assert document["edited_by"] == ["edda"]
        assert document["actions"][0]["evidence"][-1]["quote"] == "kept: 60.00 EUR"
        assert "edda" in terminal.said("show", "one")
        with pytest.raises(NotPermitted):
            cast_vote(
                asked.url, sign_in(asked.url, edda), approval_id=found.approval_id, vote="approve",
                proposal_hash=found.proposal_hash, review_hash=found.review_hash,
            )  # fmt: skip

    def test_findings_are_shown_and_nothing_is_stored(self, asked: Shop, terminal: Terminal) -> None:
        """With exit code 1, as text and as JSON."""
        edda = toy.principal(asked.url, "edda", ["lead"], kind="human")
        code, said = self.edit(terminal, edda, "--set", "order.refund.amount=61.00 EUR")
        assert code == 1
        assert "nothing was changed:" in said
        assert "(authority_unsupported)" in said
        _, as_json = self.edit(terminal, edda, "--set", "order.refund.amount=61.00 EUR", "--json")
        assert json.loads(as_json)["findings"][0]["code"] == "authority_unsupported"
        assert asked.count("proposals") == 1

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--set", "amount=60.00 EUR"],
            ["--set", "order.refund.amount"],
            ["--set", "order.refund.amount=60.00 EUR", "--quote", "order.refund.note=text:60.00 EUR"],
            ["--set", "order.refund.amount=60.00 EUR", "--quote", "order.refund.amount=60.00"],
        ],
    )
    def test_a_change_that_says_nothing_is_refused(self, asked: Shop, terminal: Terminal, arguments: list[str]) -> None:
        """Before anything is asked of the store."""
        edda = toy.principal(asked.url, "edda", ["lead"], kind="human")
        assert self.edit(terminal, edda, *arguments)[0] == 2

    def test_an_edit_of_another_document_is_refused(self, asked: Shop, terminal: Terminal) -> None:
        """One edits what one saw."""
        edda = toy.principal(asked.url, "edda", ["lead"], kind="human")
        code, said = self.edit(terminal, edda, "--set", "order.refund.amount=60.00 EUR", review_hash="0" * 64)
        assert code == 1
        assert "not the document with that hash" in said
