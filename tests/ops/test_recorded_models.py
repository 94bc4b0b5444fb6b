"""Real models' real output, replayed through the steps: nothing of it is executed and nothing stops the others."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from policies.actions import Request
from resources.extractors.recorded import RecordedExtractor
from tests.ops import toy
from tests.ops.passes import Shop, refund

EACH = 150
"""Recorded runs taken of each source: enough for every kind of malformed call in them."""


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The cases of one file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def small_model(shared_data: Path) -> Iterator[Any]:
    """What a model of 135 million parameters said, as text and as the JSON that some of it is."""
    for case in lines(shared_data / "smollm2" / "outputs.jsonl.gz"):
        yield case["raw_output"]
        if case["parsed"] is not None:
            yield case["parsed"]


def malformed_calls(shared_data: Path) -> Iterator[Any]:
    """Calls that did not fit their tool's schema: under their own name, and as if they were refunds."""
    for source in ("agentdojo", "agentdyn", "drift"):
        cases = (case for case in lines(shared_data / "agent-runs" / f"{source}.jsonl.gz") if case["malformed"])
        for case in islice(cases, EACH):
            if case.get("raw_output"):
                yield case["raw_output"]
            calls = [
                {"parameters": call["arguments"], "rationale": call.get("rationale") or ""}
                for call in case["proposed_actions"]
            ]
            named = zip(case["proposed_actions"], calls, strict=True)
            yield {"actions": [{"type": call["name"], **action} for call, action in named]}
            yield {"actions": [{"type": "order.refund", **action} for action in calls]}


class Replayed:
    """Recorded outputs by the order they were recorded for; the toy model answers for the others."""

    deterministic = True
    model = "recorded"

    def __init__(self, outputs: dict[str, Any]) -> None:
        self._recorded = RecordedExtractor(outputs, key_field="order_id")
        self._keys = outputs.keys()

    def __call__(self, request: Request) -> Any:
        assert isinstance(request, toy.RefundRequest)
        return self._recorded(request) if request.order_id in self._keys else toy.toy_model(request)


def test_nothing_that_real_models_said_is_executed_or_stops_the_others(shop: Shop, shared_data: Path) -> None:
    """Each output is parked for a person with its findings; the requests beside it are paid."""
    said = [*small_model(shared_data), *malformed_calls(shared_data)]
    outputs = {f"recorded {number}": output for number, output in enumerate(said)}
    assert len(outputs) > 500
    shop.define(extractor=Replayed(outputs))
    shop.queue({key: refund(order=key) for key in outputs} | {f"good {n}": refund(order=f"A{n}") for n in range(3)})
    shop.run()
    states = shop.states()
    assert {states.pop(f"good {number}") for number in range(3)} == {"completed"}
    assert set(states.values()) == {"needs_review"}
    assert len(toy.calls_at(shop.till)) == 3
    without = shop.rows(
        "select from proposals p where kind = 'malformed' and not exists"
        " (select from findings f where f.request_id = p.request_id and f.verdict = 'refused')"
    )
    assert without == []
    shop.assert_ledger_intact()
