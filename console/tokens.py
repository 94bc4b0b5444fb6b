"""Who is at the keyboard: the token comes from the environment, a file or a hidden prompt, never as an argument."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from policies.errors import NotAuthenticated

TokenFile = Annotated[
    Path | None,
    typer.Option(help="File that holds your token; default: the environment variable FAILSAFE_TOKEN, else a prompt."),
]


def read_token(file: Path | None) -> str:
    """The caller's token.

    Raises:
        NotAuthenticated: there is none, or the file cannot be read.
    """
    if file is not None:
        try:
            token = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NotAuthenticated(f"no token can be read from {file}: {type(error).__name__}") from None
    else:
        token = os.environ.get("FAILSAFE_TOKEN", "").strip()
        if not token and sys.stdin.isatty():
            token = typer.prompt("Token", hide_input=True, err=True).strip()
    if not token:
        raise NotAuthenticated("no token: set FAILSAFE_TOKEN or name a file with --token-file")
    return token
