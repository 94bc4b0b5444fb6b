"""`failsafe principals`: tokens are shown once, and what is changed counts at once."""

from __future__ import annotations

from resources.store.votes import sign_in
from tests.console.conftest import Terminal
from tests.postgres import Database


def test_a_token_is_shown_once_on_standard_output(terminal: Terminal, database: Database) -> None:
    """It stands alone there, so that it can be kept by `> file`; it works; no list shows it."""
    result = terminal.run(
        "principals", "add", "lead", "--role", "support_lead", "--role", "finance", "--external-id", "E1"
    )
    token = result.stdout.strip()
    assert result.exit_code == 0
    assert result.stdout == f"{token}\n"
    assert token not in result.stderr
    session = sign_in(database.url("failsafe_reviewer"), token)
    assert (session.name, session.roles) == ("lead", ["support_lead", "finance"])
    for listed in (terminal.said("principals", "list"), terminal.said("principals", "list", "--json")):
        assert "support_lead" in listed
        assert token not in listed


def test_a_service_is_one(terminal: Terminal) -> None:
    """`--service` makes a principal that never votes; the JSON form holds the token as well."""
    made = terminal.json("principals", "add", "feed", "--service")
    [listed] = terminal.json("principals", "list")
    assert made["token"].startswith("fst_")
    assert (listed["name"], listed["kind"], listed["roles"]) == ("feed", "service", [])


def test_a_name_is_taken_once(terminal: Terminal) -> None:
    """A second principal of one name, an empty or an over-long name is refused in one line."""
    terminal.said("principals", "add", "lead")
    for name in ("lead", "", "x" * 201):
        result = terminal.run("principals", "add", name)
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert len(terminal.json("principals", "list")) == 1


def test_roles_are_replaced_and_principals_disabled(terminal: Terminal) -> None:
    """Roles are set whole; a disabled principal stays listed; a name that means nobody is refused."""
    terminal.said("principals", "add", "lead", "--role", "a")
    terminal.said("principals", "set-roles", "lead", "--role", "b", "--role", "c")
    assert terminal.json("principals", "list")[0]["roles"] == ["b", "c"]
    terminal.said("principals", "set-roles", "lead")
    assert terminal.json("principals", "list")[0]["roles"] == []
    assert terminal.json("principals", "disable", "lead") == {"name": "lead", "done": True}
    assert terminal.json("principals", "list")[0]["disabled_at"] is not None
    assert terminal.run("principals", "disable", "lead").exit_code == 1
    assert terminal.run("principals", "disable", "nobody").exit_code == 1
    assert terminal.run("principals", "set-roles", "nobody", "--role", "a").exit_code == 1
