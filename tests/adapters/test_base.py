"""What an adapter's definition is checked for, and how it is opened."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import Any

import dagster as dg
import pytest

from policies.actions import Action
from policies.errors import DefinitionError
from policies.outcomes import Done, Refused, Semantics
from resources.adapters.base import Adapter, opened
from tests.adapters.actions import Pay
from tests.conftest import ROOT


class Release(Action, name="hold.release", reversible=False):
    hold: str


class Hold(Action, name="hold.make", reversible=True, undo=Release):
    hold: str


class Holds(Adapter):
    semantics = Semantics()
    url: str

    def execute(self, action: Hold | Release, key: str) -> Done | Refused:
        return Done(key)


def test_the_annotation_of_execute_says_which_actions_an_adapter_takes() -> None:
    """Every member of the union is accepted, another action is refused with the remedy."""
    holds = Holds(url="https://holds.example")
    holds.check_executes(Hold)
    holds.check_executes(Release)
    with pytest.raises(DefinitionError, match=r"Holds: execute does not take pay\.send: annotate .*action: Pay"):
        holds.check_executes(Pay)


def test_execute_without_annotation_is_refused() -> None:
    """An adapter must say what it takes."""

    class Silent(Adapter):
        semantics = Semantics()
        url: str = ""

        def execute(self, action, key):  # type: ignore[no-untyped-def]
            return Done(key)

    with pytest.raises(DefinitionError, match="execute does not take"):
        Silent().check_executes(Pay)


def test_an_adapter_for_any_action_says_so() -> None:
    """`Action` covers every action type."""

    class Everything(Adapter):
        semantics = Semantics()
        url: str = ""

        def execute(self, action: Action, key: str) -> Done:
            return Done(key)

    Everything().check_executes(Pay)


def test_action_classes_of_a_function_are_resolved_through_the_workflow() -> None:
    """A name that the module lacks is looked for among the workflow's own classes."""

    class Local(Action, name="local.do", reversible=False):
        pass

    class Locally(Adapter):
        semantics = Semantics()
        url: str = ""

        def execute(self, action: Local, key: str) -> Done:
            return Done(key)

    Locally().check_executes(Local)
    with pytest.raises(DefinitionError, match="unknown name, 'Local'"):
        Locally().check_executes(Pay)


@pytest.mark.parametrize(
    "semantics",
    [None, Semantics(timeout=timedelta(0)), Semantics(concurrency=0), Semantics(honours_key=timedelta(0))],
)
def test_impossible_semantics_are_refused(semantics: Any) -> None:
    """Semantics must be declared and must make sense."""

    class Odd(Adapter):
        url: str = ""

    Odd.semantics = semantics
    with pytest.raises(DefinitionError, match=r"adapter Odd: .*semantics"):
        Odd()


def test_undeclared_semantics_are_refused() -> None:
    """There is no default promise."""

    class Undeclared(Adapter):
        url: str = ""

    with pytest.raises(DefinitionError, match="declare `semantics"):
        Undeclared()


def test_unknown_and_wrong_fields_are_refused_by_name() -> None:
    """A misspelt field is not ignored."""
    with pytest.raises(DefinitionError) as caught:
        Holds(uri="https://holds.example")  # type: ignore[call-arg]
    assert "adapter Holds, field uri: Extra inputs are not permitted" in str(caught.value)
    assert "adapter Holds, field url: it must be given" in str(caught.value)


def test_a_nested_resource_is_refused() -> None:
    """Another resource would bring secrets of its own into the adapter."""

    class Client(dg.ConfigurableResource[Any]):
        password: str

    class Nested(Adapter):
        semantics = Semantics()
        client: Client

    with pytest.raises(DefinitionError, match="never another resource"):
        Nested(client=Client(password="x"))


def test_the_target_changes_with_the_address_and_knows_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address from the environment counts as what it is, so a changed variable is a changed target."""
    holds = Holds(url=dg.EnvVar("HOLDS_URL"))
    targets = {holds.target()}
    for url in ("https://one.example", "https://two.example"):
        monkeypatch.setenv("HOLDS_URL", url)
        targets.add(holds.target())
        assert holds.target() == Holds(url=url).target()
    assert len(targets) == 3


def test_only_the_opened_copy_is_opened_with_its_variables_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """`open` runs once, on the copy, after every variable was resolved, however deep it stands."""
    log: list[Any] = []

    class Logged(Adapter):
        semantics = Semantics()
        port: int
        hosts: dict[str, list[str]]

        def open(self) -> None:
            log.append((self.port, self.hosts))

    monkeypatch.setenv("PORT", "8710")
    monkeypatch.setenv("HOST", "holds.example")
    logged = Logged(port=dg.EnvVar.int("PORT"), hosts={"all": [dg.EnvVar("HOST"), "other"]})
    assert log == []
    opened(logged)
    assert log == [(8710, {"all": ["holds.example", "other"]})]


def test_opening_an_adapter_is_cheap() -> None:
    """No temporary Dagster instance is built around it: runs open adapters, and must not import what those need."""
    assert isinstance(opened(Holds(url="https://holds.example")), Holds)
    code = (
        "import sys; from tests.adapters.test_base import Holds; from resources.adapters.base import opened;"
        "opened(Holds(url='x')); print([m for m in ('alembic', 'sqlalchemy') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert shown.stdout.strip() == "[]"


def test_hooks_that_are_never_called_are_refused() -> None:
    """Dagster's hooks would silently do nothing."""

    class Hooked(Adapter):
        semantics = Semantics()
        url: str = ""

        def setup_for_execution(self, context: dg.InitResourceContext) -> None:
            raise AssertionError

    with pytest.raises(DefinitionError, match=r"setup_for_execution is not called .*open\(self\)"):
        Hooked()


def test_a_variable_that_does_not_fit_its_field_is_a_definition_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that is none is refused when the adapter is opened, without repeating it."""

    class Ported(Adapter):
        semantics = Semantics()
        port: int

    monkeypatch.setenv("PORT", "not-a-number")
    with pytest.raises(DefinitionError, match="a variable for a number") as caught:
        opened(Ported(port=dg.EnvVar.int("PORT")))
    assert "not-a-number" not in str(caught.value)
