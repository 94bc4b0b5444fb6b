"""From an action to a mail: the workflow writes it, the action fills in values, and no value can become a header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from hashlib import sha256
from string import Formatter
from typing import Any, Final

from policies.actions import Action
from policies.redaction import clipped, visible

MOST_RECIPIENTS: Final = 20
MAX_SUBJECT: Final = 200

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
ADDRESS: Final = re.compile(rf"(?=.{{3,254}}$)[A-Za-z0-9.!#$%&'*+/=?^_`{{|}}~-]{{1,64}}@{_LABEL}(?:\.{_LABEL})*")
"""A mail address as SMTP takes it: no name, no quotes, no comments, nothing outside ASCII."""


def placeholders(template: str) -> set[str]:
    """The names that a template uses.

    Raises:
        ValueError: it is no template, or holds more than `{name}`.
    """
    names = set()
    for _, name, specification, conversion in Formatter().parse(template):
        if name is None:
            continue
        if not name.isidentifier() or specification or conversion:
            raise ValueError(f"{{{name}}}: write the name of a parameter alone, such as {{order_id}}")
        names.add(name)
    return names


def filled(template: str, action: Action) -> str:
    """The template with the action's parameters as people read them."""
    return template.format_map({name: _words(getattr(action, name)) for name in placeholders(template)})


def recipients(value: Any) -> tuple[str, ...] | None:
    """The addresses that a parameter holds, each once; None: it holds something else, or too many."""
    given = value if isinstance(value, (list, tuple)) else [value]
    found = tuple(dict.fromkeys(one for one in given if isinstance(one, str) and ADDRESS.fullmatch(one)))
    return found if len(set(given)) == len(found) and 0 < len(found) <= MOST_RECIPIENTS else None


def message_id(key: str, sender: str) -> str:
    """The same for every attempt under a key, so that a receiver can drop the second one of a message."""
    return f"<{sha256(key.encode('utf-8', 'backslashreplace')).hexdigest()}@{sender.rpartition('@')[2]}>"


def mail(*, sender: str, to: Sequence[str], subject: str, text: str, message: str) -> bytes:
    """The message as it is sent: plain text in ASCII lines, whatever characters it holds."""
    made = EmailMessage(policy=SMTP)
    made["From"] = sender
    made["To"] = ", ".join(to)
    made["Subject"] = clipped(visible(" ".join(subject.split())), MAX_SUBJECT)
    made["Date"] = datetime.now(UTC)
    made["Message-ID"] = message
    made["Auto-Submitted"] = "auto-generated"
    made.set_content(visible(text), charset="utf-8", cte="quoted-printable")
    return made.as_bytes()


def _words(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_words, value))
    return "" if value is None else str(value)
