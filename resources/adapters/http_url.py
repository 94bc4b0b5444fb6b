"""Which addresses may be spoken to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from policies.errors import DefinitionError


def check_url(url: str, hosts: Iterable[str], where: str) -> None:
    """Accepts an `http` or `https` address whose host is one of `hosts` and that holds nothing else but a path.

    Raises:
        DefinitionError: naming what is wrong, never the whole address: its path may be a secret.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host = None
    if not host or not re.fullmatch("[!-~]+", url) or parts.scheme not in ("http", "https"):
        raise DefinitionError(f"{where}: write it as https://host/path")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise DefinitionError(f"{where}: it must hold no user, password, query or fragment")
    if host not in {allowed.lower() for allowed in hosts}:
        raise DefinitionError(f"{where}: its host {host} is not one of hosts; add it if it may be called")
