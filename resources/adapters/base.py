"""The base of every effect provider's adapter."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, ClassVar, TypeVar, get_args, get_type_hints

import dagster as dg
from pydantic import ConfigDict, ValidationError

from policies.actions import Action
from policies.errors import DefinitionError
from policies.outcomes import Done, Refused, Semantics
from resources.secrets import HiddenText, check_reference, secret_fields

_PLAIN = "fields hold text, numbers, lists or secrets, never another resource, whose secrets would show"

_opening: ContextVar[bool] = ContextVar("failsafe_opening_adapter", default=False)


class Adapter(dg.ConfigurableResource):  # type: ignore[type-arg]  # dagster refuses type parameters on resources
    """One effect provider: what it promises (`semantics`), how an action is executed there, how it is found again.

    Subclass it with plain config fields, `token: fs.Secret` for secrets, and `execute` whose `action` annotation names
    the action type (or types: `Reserve | Release`) it handles. An action's undo goes to the same adapter unless the
    workflow lists it with another one.

    What `execute` and `look_up` may do:
        return `Done` or `Refused`: the provider's definite answer.
        raise `NotExecuted(retry_after=seconds)`: this call certainly did nothing; the key may be sent again.
        raise anything else: nobody knows; the effect is looked up before anything is sent again.

    No call may take longer than `semantics.timeout`: a lease is only long enough for that. Calls come from several
    threads at once. What `open` opens, `close` closes.
    """

    model_config = ConfigDict(hide_input_in_errors=True, extra="forbid")

    semantics: ClassVar[Semantics]

    def __init__(self, **data: Any) -> None:
        where = f"adapter {type(self).__name__}"
        secrets = secret_fields(type(self))
        if not _opening.get():
            for name in secrets & data.keys():
                if data[name] is not None:
                    check_reference(data[name], f"{where}, field {name}")
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise DefinitionError("\n".join(f"{where}, {problem}" for problem in _problems(error, data))) from None
        except dg.DagsterError as error:
            raise DefinitionError(f"{where}: {_PLAIN} ({type(error).__name__})") from error
        if self.nested_resources:
            raise DefinitionError(f"{where}, field {', '.join(self.nested_resources)}: {_PLAIN}")
        if _opening.get():
            for name in secrets:
                if isinstance(self.__dict__[name], str):
                    self.__dict__[name] = HiddenText(self.__dict__[name])
        _check_hooks(self, where)
        _check_semantics(self, where)

    def execute(self, action: Any, key: str) -> Done | Refused:
        """Makes the effect of `action` happen under the idempotency `key`."""
        raise NotImplementedError

    def look_up(self, key: str) -> Done | Refused | None:
        """What the provider knows of `key`; None when it knows nothing. Called only where `semantics.lookup` is set."""
        raise NotImplementedError

    def snapshot(self, action: Any) -> str | None:  # noqa: ARG002  # by default no action rests on anything
        """A fingerprint of the outside state that `action` rests on (a version, an ETag); None: it rests on none.

        Taken before anybody decides, and read again before the effect: what was decided on another state is stale, is
        judged anew, and is never carried out. An exception means that it cannot be read now, so nothing goes on. At
        most 200 characters, which people may see; leave out what the request's own earlier actions change.
        """
        return None

    def provider(self) -> str:
        """The name under which limits, breaker and pauses are kept: adapters of one provider share it."""
        return type(self).__name__

    def target(self) -> str:
        """Which host and account the effects reach: by default every field that is no secret.

        A changed target is a changed proposal, so leave out what may change without reaching somebody else (a timeout).
        """
        secrets = secret_fields(type(self))
        public = {name: settled(value) for name, value in sorted(dict(self).items()) if name not in secrets}
        try:
            return json.dumps(public, sort_keys=True)
        except TypeError:
            where = f"adapter {type(self).__name__}"
            raise DefinitionError(f"{where}: a field is no plain value; define target(self) -> str yourself") from None

    def check_executes(self, model: type[Action], known: Iterable[type[Action]] = ()) -> None:
        """Accepts an action type that `execute` is annotated for; `known` resolves names the module does not hold.

        Raises:
            DefinitionError: `execute` has no annotation for its action, or one that does not cover `model`.
        """
        where = f"adapter {type(self).__name__}"
        names = {action.__name__: action for action in (*known, model)}
        try:
            annotation = get_type_hints(type(self).execute, localns=names).get("action", Any)
        except NameError as error:
            raise DefinitionError(f"{where}: execute is annotated with an unknown name, {error.name!r}") from None
        accepted = tuple(part for part in (annotation, *get_args(annotation)) if isinstance(part, type))
        if not accepted or not issubclass(model, accepted):
            remedy = f"annotate execute(self, action: {model.__name__}, key: str), or give it to another adapter"
            raise DefinitionError(f"{where}: execute does not take {model.action_type.name}: {remedy}")

    def takes_snapshots(self) -> bool:
        """Whether `snapshot` is defined here: without it nobody is asked, and no call is made."""
        return type(self).snapshot is not Adapter.snapshot

    def open(self) -> None:
        """Called once on the copy that a run uses, its secrets resolved: prepare connections here."""

    def close(self) -> None:
        """Ends an opened copy: give connections back. Closing twice must do no harm."""


A = TypeVar("A", bound=Adapter)


def opened(adapter: A) -> A:
    """A copy of `adapter` ready to call, its environment variables resolved; end it with `close()`.

    Raises:
        DefinitionError: an environment variable is missing or empty, or what it holds does not fit.
    """
    where = f"adapter {type(adapter).__name__}"
    missing = sorted(name for name in _variables(dict(adapter)) if not os.environ.get(name))
    if missing:
        raise DefinitionError(f"{where}: set {', '.join(missing)} in the environment of the code location")
    try:
        return _copy(adapter, _resolved(dict(adapter)))
    except ValueError:
        # Python's text would repeat the value of the variable.
        raise DefinitionError(f"{where}: a variable for a number holds something else") from None


def with_secret(live: A, value: str) -> A:
    """An opened copy of `live` whose secrets all hold `value`; conformance looks for it in whatever is shown."""
    return _copy(live, {**dict(live), **dict.fromkeys(secret_fields(type(live)), value)})


def secrets_of(adapter: Adapter) -> tuple[str, ...]:
    """The resolved secrets of an opened adapter."""
    values = (getattr(adapter, name) for name in sorted(secret_fields(type(adapter))))
    return tuple(str.__str__(value) for value in values if isinstance(value, HiddenText))


def settled(value: Any) -> Any:
    """A field's value as it will be in the run: that of its environment variable, or the variable's name if unset."""
    variable = _variable(value)
    if variable is None:
        return value
    found = os.environ.get(variable)
    return {"env": variable} if found is None else found


def _copy(adapter: A, values: Mapping[str, Any]) -> A:
    token = _opening.set(True)
    try:
        copy = type(adapter)(**values)
    finally:
        _opening.reset(token)
    copy.open()
    return copy


def _variable(value: object) -> str | None:
    """The variable that `dg.EnvVar` or `dg.EnvVar.int` stands for."""
    name = getattr(value, "env_var_name", None)
    return name if isinstance(name, str) else None


def _variables(value: object) -> Iterator[str]:
    variable = _variable(value)
    if variable is not None:
        yield variable
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _variables(item)


def _resolved(value: Any) -> Any:
    variable = _variable(value)
    if variable is not None:
        return int(os.environ[variable]) if isinstance(value, int) else os.environ[variable]
    if isinstance(value, dict):
        return {key: _resolved(item) for key, item in value.items()}
    return [_resolved(item) for item in value] if isinstance(value, list) else value


def _problems(error: ValidationError, data: Mapping[str, Any]) -> Iterator[str]:
    for detail in error.errors(include_input=False, include_url=False):
        field = ".".join(map(str, detail["loc"])) or "as a whole"
        # Dagster fills in None for a field that was not given.
        yield f"field {field}: {detail['msg'] if not detail['loc'] or detail['loc'][0] in data else 'it must be given'}"


def _check_hooks(adapter: Adapter, where: str) -> None:
    # Dagster's own way of initialising a resource builds a whole temporary instance around it, every time.
    for hook in ("setup_for_execution", "teardown_after_execution", "yield_for_execution", "create_resource"):
        if getattr(type(adapter), hook) is not getattr(dg.ConfigurableResource, hook):
            raise DefinitionError(f"{where}: {hook} is not called for adapters; define open(self) and close(self)")


def _check_semantics(adapter: Adapter, where: str) -> None:
    semantics = getattr(adapter, "semantics", None)
    if not isinstance(semantics, Semantics):
        raise DefinitionError(f"{where}: declare `semantics = fs.Semantics(...)`: what its provider promises")
    if semantics.timeout.total_seconds() <= 0 or semantics.concurrency < 1:
        raise DefinitionError(f"{where}: semantics need a timeout above zero and a concurrency of at least 1")
    if semantics.honours_key is not None and semantics.honours_key.total_seconds() <= 0:
        raise DefinitionError(f"{where}: semantics.honours_key is how long keys are kept; leave it out if they are not")
