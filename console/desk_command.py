"""`failsafe desk`: the review desk and the intake API."""

from __future__ import annotations

import ipaddress
from typing import Annotated

import typer

from console.output import print_lines, print_note
from console.store import store_url
from console.workflow_modules import WorkflowModules, find_workflows
from resources.store.engine import Duty

commands = typer.Typer()

DUTIES = (Duty.REVIEWER, Duty.AUDITOR, Duty.OPERATOR, Duty.INTAKE)
"""Logins that the desk uses, each for its own part."""


@commands.command()
def desk(
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8600,
    host: Annotated[str, typer.Option(help="Address to listen on; other than loopback, put TLS in front.")] = (
        "127.0.0.1"
    ),
    workflow_module: WorkflowModules = None,
) -> None:
    """Serve the review desk and the intake API until Ctrl-C.

    People sign in with their own token, see what waits, and decide on exactly what they were shown. Programs submit by
    POST /v1/requests for the workflows of FAILSAFE_WORKFLOWS; /v1/openapi.json says how. With FAILSAFE_DAGSTER_URL set,
    Dagster is told of what a vote released, and need not find it by itself.
    """
    import uvicorn  # with Starlette it costs half a second that other commands do without

    from console.dagster_web import DagsterWeb
    from console.desk.application import application
    from console.knock import Knock

    for duty in DUTIES:
        url = store_url(duty)
    workflows = find_workflows(workflow_module)
    dagster = DagsterWeb.from_environment()
    loopback = _is_loopback(host)
    print_lines(f"desk:       http://{host}:{port}/", f"intake API: http://{host}:{port}/v1/openapi.json")
    print_lines(
        f"workflows the API takes requests for: {', '.join(sorted(workflows)) or 'none (set FAILSAFE_WORKFLOWS)'}"
    )
    if not loopback:
        print_note("this is not loopback: people can sign in over HTTPS only, so put a proxy with TLS in front")
    knocking = {} if dagster is None else {"released": Knock(url, dagster).released}
    uvicorn.run(
        application(url, workflows, loopback=loopback, **knocking),
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        limit_concurrency=200,
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
