"""One exception tree. A class's docstring is its default message; the message tells a person what to do next."""

from __future__ import annotations

import inspect


class FailsafeError(Exception):
    """Something in dagster-failsafe went wrong; the message of the subclass says what to do."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.getdoc(type(self)) or type(self).__name__)


class DefinitionError(FailsafeError):
    """A workflow, policy or adapter definition is wrong; correct the named file and rule, then load again."""


class CanonicalFormError(FailsafeError):
    """The value has no canonical form (non-finite number, integer beyond 2^53, lone surrogate); send it as a string."""


class UnknownTransition(FailsafeError):
    """No transition leaves this state by this event; reload the request and look at its ledger before trying again."""


class OperationConflict(FailsafeError):
    """The operation_id was already used with another payload; nothing was stored. Use a new operation_id."""


class RequestRefused(FailsafeError):
    """The request could not be accepted and nothing was stored; correct the named field and submit it again."""


class NotAuthenticated(FailsafeError):
    """The credential is unknown, expired or disabled; sign in again or ask an administrator for a new token."""


class NotPermitted(FailsafeError):
    """The principal may not do this; ask somebody who holds one of the roles named."""


class NotPossibleNow(FailsafeError):
    """What the request has come to rules this out; nothing was changed. Show it and decide on what it says now."""


class VoteRefused(FailsafeError):
    """The vote was not counted; read the reason, show the request again and decide on what it says now."""

    def __init__(self, code: str, message: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class SchemaMismatch(FailsafeError):
    """The database schema is not one this code knows; run `failsafe db upgrade` or deploy the matching version."""


class StoreUnavailable(FailsafeError):
    """The database cannot be reached; check FAILSAFE_DATABASE_URL and run `failsafe doctor`."""


class StoreContended(StoreUnavailable):
    """Other transactions were in the way again and again; nothing was lost. Look for a long one, then run again."""

    tried_enough = False
    """Work within this work was tried as often as makes sense: trying the whole again would only hide it."""


class NotExecuted(FailsafeError):
    """The provider certainly did nothing (rate limit, refused connection); the same key may be sent again later."""

    def __init__(self, message: str | None = None, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds the provider asked us to wait, or None."""


class OutcomeUnknown(FailsafeError):
    """The provider may or may not have done it; it is looked up before anything is sent again."""
