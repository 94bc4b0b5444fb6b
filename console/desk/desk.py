"""What every page of the desk is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from starlette.datastructures import QueryParams
from starlette.responses import HTMLResponse, RedirectResponse

from console.desk.csrf import csrf_token
from console.desk.forms import Form
from console.desk.rendering import render
from console.desk.sign_in_limit import SignInLimit
from resources.store.sessions import SignedIn

if TYPE_CHECKING:
    from resources.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Desk:
    """One running desk. `loopback`: it listens on this machine only, where plain HTTP stays between processes.

    `released` is told of each approval request that a vote has released; it neither waits nor raises.
    `workflows`, by name, are those whose proposals can be edited here.
    """

    database_url: str
    loopback: bool
    released: Callable[[UUID], None]
    workflows: Mapping[str, Workflow]
    limit: SignInLimit = field(default_factory=SignInLimit)


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of somebody who is signed in."""

    desk: Desk
    person: SignedIn
    parts: Mapping[str, Any]
    query: QueryParams
    form: Form

    def page(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page for this person."""
        return page(template, self.person, status=status, **values)


def page(template: str, person: SignedIn | None, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page with the frame around it: who is signed in, and the token that its forms carry."""
    csrf = "" if person is None else csrf_token(person.secret)
    return HTMLResponse(render(template, person=person, csrf=csrf, **values), status_code=status)


def see(path: str) -> RedirectResponse:
    """Go and look at another page, by GET."""
    return RedirectResponse(path, status_code=303)
