"""Whether a form was sent by our own page: it carries a token that only the session's own pages show."""

from __future__ import annotations

import hmac
from hashlib import sha256
from urllib.parse import urlsplit

from starlette.requests import Request

from policies.errors import NotPermitted

FIELD = "csrf"


def csrf_token(secret: str) -> str:
    """The token of a session. It is derived one way from the secret, so that a page that leaks it leaks no session."""
    return hmac.new(secret.encode("utf-8", "surrogateescape"), b"failsafe/csrf/v1", sha256).hexdigest()


def check_csrf(secret: str, given: str) -> None:
    """Raise unless `given` is the session's token.

    Raises:
        NotPermitted: it is missing or another's.
    """
    if not hmac.compare_digest(csrf_token(secret).encode(), given.encode("utf-8", "replace")):
        raise NotPermitted(
            "this form was not sent by a page of your session, so nothing was done; open the page again and send it"
        )


def check_origin(request: Request) -> None:
    """Raise if the browser says that another site sent this; the only guard there is before somebody is signed in.

    Raises:
        NotPermitted: the origin is another host.
    """
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise NotPermitted("this form was sent by another site, so nothing was done; open the page here and send it")
