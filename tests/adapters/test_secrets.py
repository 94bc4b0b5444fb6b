"""Secrets are declared by name, resolved in the run, and never shown."""

from __future__ import annotations

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.errors import DefinitionError
from policies.outcomes import Done, Refused, Semantics
from resources.adapters.base import Adapter, opened, secrets_of
from resources.secrets import Secret, scrubbed
from tests.adapters.actions import Pay, pay

CANARY = "sk-canary-4711"


class Bank(Adapter):
    semantics = Semantics(lookup=True)
    url: str
    token: Secret
    second: Secret | None = None

    def execute(self, action: Pay, key: str) -> Done | Refused:
        return Done(f"{self.token}:{key}")


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> dg.EnvVar:
    """A secret in the environment."""
    monkeypatch.setenv("BANK_TOKEN", CANARY)
    return dg.EnvVar("BANK_TOKEN")


def test_a_literal_secret_is_refused_without_being_repeated() -> None:
    """A literal where a secret belongs is a definition error that names field and remedy, not the literal."""
    with pytest.raises(DefinitionError, match=r"Bank, field token: .*dg\.EnvVar") as caught:
        Bank(url="https://bank.example", token=CANARY)
    assert CANARY not in str(caught.value)


def test_a_secret_passed_as_the_name_of_a_variable_is_refused() -> None:
    """`dg.EnvVar("<the secret>")` is the same mistake once more."""
    with pytest.raises(DefinitionError, match="name of an environment variable") as caught:
        Bank(url="https://bank.example", token=dg.EnvVar(CANARY))
    assert CANARY not in str(caught.value)


def test_a_literal_default_is_refused() -> None:
    """A secret written into the class is refused as well."""

    class Careless(Bank):
        token: Secret = CANARY

    with pytest.raises(DefinitionError, match="field token"):
        Careless(url="https://bank.example")


def test_a_secret_inside_a_collection_is_refused() -> None:
    """Only fields are masked, so a secret must be one."""

    class Headers(Adapter):
        semantics = Semantics()
        headers: dict[str, Secret]

    with pytest.raises(DefinitionError, match=r"field headers: .*`headers: fs\.Secret`"):
        Headers(headers={"x": "y"})


def test_an_optional_secret_may_be_left_out_but_not_be_a_literal(token: dg.EnvVar) -> None:
    """`Secret | None` accepts None or a name."""
    assert Bank(url="https://bank.example", token=token).second is None
    with pytest.raises(DefinitionError, match="field second"):
        Bank(url="https://bank.example", token=token, second="literal")


def test_only_the_opened_copy_knows_the_secret(token: dg.EnvVar) -> None:
    """The definition holds the name; the opened copy holds the value and lets code use it as a string."""
    bank = Bank(url="https://bank.example", token=token)
    live = opened(bank)
    assert live.execute(pay(), "k").reference == f"{CANARY}:k"  # type: ignore[union-attr]
    assert f"Bearer {live.token}" == f"Bearer {CANARY}"
    assert secrets_of(live) == (CANARY,)
    assert secrets_of(bank) == ()
    live.close()


def test_no_form_of_an_opened_adapter_shows_the_secret(token: dg.EnvVar) -> None:
    """Neither repr, str, its fields nor its target hold the value."""
    live = opened(Bank(url="https://bank.example", token=token, second=token))
    for shown in (repr(live), str(live), repr(dict(live)), f"{live!r}", live.target()):
        assert CANARY not in shown
    live.close()


def test_a_missing_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening an adapter whose variable is unset or empty says which one to set."""
    monkeypatch.setenv("BANK_TOKEN", "")
    bank = Bank(url="https://bank.example", token=dg.EnvVar("BANK_TOKEN"))
    with pytest.raises(DefinitionError, match="set BANK_TOKEN in the environment"):
        opened(bank)


def test_a_failing_config_never_repeats_the_values_it_was_given(token: dg.EnvVar) -> None:
    """An error about one field does not show the others, nor its own value."""
    with pytest.raises(DefinitionError) as caught:
        Bank(url=dg.EnvVar, token=token, unknown=CANARY)  # type: ignore[call-arg, arg-type]
    assert CANARY not in str(caught.value)


@given(st.text(), st.lists(st.text(min_size=1), max_size=4), st.text())
def test_scrubbed_text_holds_no_secret(before: str, secrets: list[str], after: str) -> None:
    """Wherever secrets stand, and even where one contains another, none is left."""
    text = before + "".join(secrets) + after
    left = scrubbed(text, secrets)
    assert not any(secret in left for secret in secrets if secret not in "***" and "*" not in secret)


def test_the_password_of_a_secret_address_is_scrubbed_alone() -> None:
    """A driver may show the password of an address decoded and by itself."""
    secret = "postgresql://bank:p%40ss-word@db.example/bank"
    assert scrubbed("login with p@ss-word or p%40ss-word", [secret]) == "login with *** or ***"
