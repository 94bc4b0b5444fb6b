"""Changing what is asked: a new proposal, judged anew, on which somebody else decides."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from starlette.responses import Response

from console.desk.asked import AskedPage, edit_obstacle, read_asked
from console.desk.desk import Visit, see
from console.desk.edited import own_edit
from console.desk.node import Node
from console.desk.parameters import Entry, changes_of, entered, parameters_of, source_names, unchanged
from console.desk.voting import Ballot
from policies.errors import DefinitionError, NotPermitted, NotPossibleNow, RequestRefused, VoteRefused
from policies.findings import Finding
from policies.strict_json import read_json

if TYPE_CHECKING:
    from resources.workflow import Workflow


def edit_page(visit: Visit) -> Response:
    """Every parameter as it is asked, to be changed."""
    shown = read_asked(visit, str(visit.parts["approval"]))
    _require_editable(visit, shown)
    workflow = _workflow(visit, shown)
    return _page(visit, shown, workflow, unchanged(parameters_of(shown.asked.document, workflow)))


def edit_form(visit: Visit) -> Response:
    """Make the changes a new proposal, or say by each field what refuses them. Sent twice it is one edit."""
    from resources.store.edits import (
        Edited,
        edit_proposal,
    )  # brings Dagster; not every desk edits

    approval_id = visit.parts["approval"]
    ballot = Ballot.parse(str(approval_id), visit.form.get("proposal_hash"), visit.form.get("review_hash"))
    shown = read_asked(visit, str(approval_id))
    workflow = _workflow(visit, shown)
    entries = entered(parameters_of(shown.asked.document, workflow), visit.form)
    reason, changes = visit.form.get("reason").strip(), changes_of(entries)
    asked = replace(shown.asked, proposal_hash=ballot.proposal_hash, review_hash=ballot.review_hash)
    try:
        if not changes:
            raise RequestRefused("nothing was changed: these are the parameters that are asked already")
        made = edit_proposal(visit.desk.database_url, visit.person.session, asked, workflow, changes, reason)
    except VoteRefused:
        mine = own_edit(visit, shown.asked)
        if mine is None or mine.reason != reason:
            raise
        return see(f"/approvals/{approval_id}/edited")
    except RequestRefused as error:
        return _page(visit, shown, workflow, entries, reason=reason, problems=[str(error)], status=422)
    except DefinitionError as error:
        raise NotPossibleNow(str(error)) from None
    if isinstance(made, Edited):
        return see(f"/approvals/{approval_id}/edited")
    placed, others = _placed(entries, made, shown)
    return _page(visit, shown, workflow, placed, reason=reason, problems=others, status=422)


def _page(
    visit: Visit,
    shown: AskedPage,
    workflow: Workflow,
    entries: list[Entry],
    *,
    reason: str = "",
    problems: list[str] | None = None,
    status: int = 200,
) -> Response:
    wrong = sum(bool(one.problems) for one in entries)
    return visit.page(
        "edit.html",
        status=status,
        asked=shown.asked,
        actions=[(action, list(group)) for action, group in groupby(entries, lambda one: one.parameter.action_id)],
        sources=source_names(shown.asked.document, workflow),
        content=Node(read_json(shown.asked.document)),
        reason=reason,
        problems=problems or [],
        wrong=wrong,
    )


def _workflow(visit: Visit, shown: AskedPage) -> Workflow:
    workflow = visit.desk.workflows.get(shown.asked.workflow)
    if workflow is None:
        raise NotPossibleNow(
            f"this desk was started without the workflow {shown.asked.workflow}, so nothing of it is changed here; add "
            "its module to FAILSAFE_WORKFLOWS, or use `failsafe edit`"
        )
    return workflow


def _require_editable(visit: Visit, shown: AskedPage) -> None:
    obstacle = edit_obstacle(visit, shown)
    if obstacle is not None:
        raise NotPermitted(f"nothing is changed here by you: {obstacle}")


def _placed(entries: list[Entry], findings: tuple[Finding, ...], shown: AskedPage) -> tuple[list[Entry], list[str]]:
    """The entries with what was found at each, and what was found elsewhere."""
    actions = [str(action["action_id"].value) for action in Node(read_json(shown.asked.document))["actions"]]
    at: dict[tuple[str, str], list[str]] = {}
    for one in findings:
        at.setdefault(_place(one.parameter, actions), []).append(f"{one.message} ({one.code})")
    placed = [
        replace(one, problems=tuple(at.pop((one.parameter.action_id, one.parameter.name), ()))) for one in entries
    ]
    return placed, [
        f"{action}{'.' if name else ''}{name}: {said}" if action else said
        for (action, name), messages in at.items()
        for said in messages
    ]


def _place(path: str, actions: list[str]) -> tuple[str, str]:
    """Action and parameter that a finding's path means; both are empty where it means the whole."""
    counted = re.match(r"actions\[(\d+)\](?:\.parameters)?(.*)", path, re.DOTALL)
    if counted is not None and int(counted[1]) < len(actions):
        action, rest = actions[int(counted[1])], counted[2]
    else:
        action = next((one for one in actions if path == one or path.startswith(f"{one}.")), "")
        rest = path[len(action) :] if action else ""
    name = re.match(r"\.?([^.\[]*)", rest)
    return action, name[1] if name else ""
