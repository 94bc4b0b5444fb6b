"""Records for many requests at once: one that cannot be looked up holds up only the requests that rest on it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ops.batch import Batch
from ops.parallel import in_a_thread
from policies.records import ResolvedRecords, record_links
from resources.look_ups import Key, LookedUp, resolve_apart
from resources.store.engine import transaction
from resources.store.moves import plain_text
from resources.store.stages import reasons_told
from resources.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Missing:
    """Why what a request rests on is not there; `alone`: for its own sake, so that the try counts as an attempt."""

    reason: str
    alone: bool


def look_up(
    batch: Batch, wanted: Mapping[uuid.UUID, set[Key]], tick: Callable[[], None]
) -> tuple[ResolvedRecords, Mapping[uuid.UUID, Missing]]:
    """Look up what each request rests on, while this thread calls `tick`; and say which requests lack something.

    A service that answers for others but not for a request's key fails for that request alone. One that answers
    nothing is taken for down, which is nobody's fault but the moment's. Where it is asked for nothing but what failed
    alone before, with the same error, it goes on failing for that alone: what it did not hold up has left.
    """
    needed = set().union(*wanted.values())
    if not needed:
        return {}, {}
    looked = in_a_thread(lambda: resolve_apart(batch.workflow, needed), tick)
    if not looked.failed:
        return looked.records, {}
    lacking = {
        request_id: sorted(failed) for request_id, keys in wanted.items() if (failed := keys & looked.failed.keys())
    }
    return looked.records, _blame(batch, lacking, looked)


def _blame(batch: Batch, lacking: Mapping[uuid.UUID, list[Key]], looked: LookedUp) -> Mapping[uuid.UUID, Missing]:
    answering = {record for record, _ in looked.failed if looked.answered(record)}
    with transaction(batch.engine) as connection:
        told = reasons_told(connection, list(lacking))
    sentences = {key: _alone(batch.workflow, key[0], error) for key, error in looked.failed.items()}
    # A service that is silent is down as soon as one of those who ask has not been told that it fails for it alone.
    down = {
        key[0]
        for request_id, keys in lacking.items()
        for key in keys
        if key[0] not in answering and told.get(request_id) != sentences[key]
    }
    missing = {}
    for request_id, keys in lacking.items():
        own = [key for key in keys if key[0] not in down and (key in looked.alone or key[0] not in answering)]
        missing[request_id] = (
            Missing(sentences[own[0]], alone=True)
            if own
            else Missing(f"a record look-up failed: {looked.failed[keys[0]]}", alone=False)
        )
    return missing


def _alone(workflow: Workflow, record: str, error: str) -> str:
    """The reason as it is stored; it names no key, since whoever submits chooses that."""
    kinds = {
        link.key
        for entry in workflow.catalogue.entries.values()
        for link in record_links(entry.action_type.model)
        if link.record == record
    }
    return plain_text(f"the look-up in {record} by {' or '.join(sorted(kinds))} fails for this alone: {error}")
