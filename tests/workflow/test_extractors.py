"""Extractors may return or raise anything: the output is kept, the failure is classed, nothing else happens."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from policies.errors import DefinitionError
from policies.proposals import Abstention, Proposal, read_output
from policies.retries import ErrorClass
from resources.extractors.base import ExtractionFailed, ExtractorTraits, extract, traits
from resources.extractors.recorded import RecordedExtractor, fingerprint
from tests.workflow import refunds
from tests.workflow.refunds import RefundRequest

REQUEST = RefundRequest(order_id="o-1", message="please refund")


def test_a_proposal_and_an_abstention_are_kept_and_read_back() -> None:
    """What the extractor said is what is read."""
    output = extract(refunds.extract, REQUEST)
    assert isinstance(output, bytes)
    assert read_output(output) == refunds.extract(REQUEST)
    shy = extract(refunds.extract, RefundRequest(order_id="o-1", message="hello"))
    assert isinstance(shy, bytes)
    assert read_output(shy) == Abstention("no wish for a refund")


NO_PROPOSAL: Any = ("x",)


@pytest.mark.parametrize(
    "output",
    [None, "x", 7, {"actions": "all"}, ["a"], object(), b"\xff", float("nan"), "\0\ud800", Proposal(NO_PROPOSAL)],
)
def test_any_other_output_is_kept_and_refused_with_findings(output: Any) -> None:
    """Malformed output is evidence: kept as it came, never a crash, never a guess."""
    kept = extract(lambda _: output, REQUEST)
    if isinstance(kept, ExtractionFailed):
        pytest.fail(kept.reason)
    assert isinstance(read_output(kept), tuple)


def raising(error: Exception, *, deterministic: bool) -> Any:
    """An extractor that fails."""

    class Raising:
        def __call__(self, request: RefundRequest) -> None:
            raise error

    extractor = Raising()
    extractor.deterministic = deterministic  # type: ignore[attr-defined]
    return extractor


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionResetError("x"), ValueError("no JSON"), RecursionError()])
def test_a_failing_model_is_asked_again_later(error: Exception) -> None:
    """A model has no effect on the world, so another attempt does no harm."""
    failed = extract(raising(error, deterministic=False), REQUEST)
    assert isinstance(failed, ExtractionFailed)
    assert failed.error_class is ErrorClass.TRANSIENT
    assert type(error).__name__ in failed.reason


def test_a_deterministic_extractor_that_fails_will_fail_again() -> None:
    """Unless it was the network's fault."""
    for error, expected in (
        (ValueError("bug"), ErrorClass.PERMANENT),
        (TimeoutError(), ErrorClass.TRANSIENT),
        (OSError("no route"), ErrorClass.TRANSIENT),
    ):
        failed = extract(raising(error, deterministic=True), REQUEST)
        assert isinstance(failed, ExtractionFailed)
        assert failed.error_class is expected


def test_the_reason_of_a_failure_can_be_stored_and_shown() -> None:
    """It is bounded and holds nothing hidden."""
    failed = extract(raising(ValueError("\0\u202e" + "x" * 9_000), deterministic=False), REQUEST)
    assert isinstance(failed, ExtractionFailed)
    assert len(failed.reason) <= 500
    assert "\0" not in failed.reason
    assert "\u202e" not in failed.reason


def test_an_interrupt_is_no_failure_of_the_model() -> None:
    """It ends the worker."""

    def interrupted(_: RefundRequest) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(interrupted, REQUEST)


def test_traits_are_read_and_checked() -> None:
    """Attributes say what an extractor is; wrong ones are definition errors."""

    class Model:
        deterministic = True
        model = "small-1"
        prompt_version = "7"
        concurrency = 3

        def __call__(self, request: RefundRequest) -> Abstention:
            return Abstention("always")

    assert traits(Model()) == ExtractorTraits(deterministic=True, model="small-1", prompt_version="7", concurrency=3)
    assert traits(refunds.extract) == ExtractorTraits()
    mistakes = [("concurrency", 0), ("concurrency", "3"), ("concurrency", True), ("model", 1), ("deterministic", 1)]
    for name, wrong in mistakes:
        model = Model()
        setattr(model, name, wrong)
        with pytest.raises(DefinitionError, match=f"attribute {name} must be"):
            traits(model)
    with pytest.raises(DefinitionError, match="Model: it is called"):
        traits(Model)


def test_recorded_outputs_are_replayed_as_they_stand() -> None:
    """By fingerprint or by the caller's own id; an unknown request is an abstention."""
    by_content = RecordedExtractor({fingerprint(REQUEST): {"actions": "malformed"}}, model="small-1")
    assert by_content(RefundRequest.model_validate_json('{"message":"please refund","order_id":"o-1"}')) == {
        "actions": "malformed"
    }
    assert traits(by_content) == ExtractorTraits(deterministic=True, model="small-1")
    by_id = RecordedExtractor({"o-1": {"abstention": "blurred"}}, key_field="order_id")
    assert by_id(REQUEST) == {"abstention": "blurred"}
    assert by_id(RefundRequest(order_id="o-2", message="")) == Abstention("no output is recorded for this request")


def test_recorded_outputs_are_read_from_a_file(tmp_path: Path) -> None:
    """One object per line, compressed or not, blank lines ignored."""
    rows = ({"key": "o-1", "output": "some text"}, {"key": "o-2", "output": None})
    lines = "\n\n".join(map(json.dumps, rows))
    (tmp_path / "outputs.jsonl").write_text(lines)
    (tmp_path / "outputs.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    for name in ("outputs.jsonl", "outputs.jsonl.gz"):
        assert RecordedExtractor(tmp_path / name, key_field="order_id")(REQUEST) == "some text"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"key": "a", "output": 1}\n\n{"key": "a", "output": 2}', r"outputs\.jsonl:3: each key must"),
        ('{"key": 1, "output": 1}', r"outputs\.jsonl:1: each key must"),
        ('{"key": "a"}', r"outputs\.jsonl:1: write one"),
        ("[]", r"outputs\.jsonl:1: write one"),
        ("{", r"outputs\.jsonl:1: write one"),
    ],
)
def test_a_wrong_line_of_recorded_outputs_is_named(tmp_path: Path, lines: str, said: str) -> None:
    """A recording that is not whole would silently abstain."""
    (tmp_path / "outputs.jsonl").write_text(lines)
    with pytest.raises(DefinitionError, match=said):
        RecordedExtractor(tmp_path / "outputs.jsonl")


def test_a_recording_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Missing, or not what its name says."""
    (tmp_path / "outputs.jsonl.gz").write_bytes(b"not compressed")
    for name in ("missing.jsonl", "outputs.jsonl.gz"):
        with pytest.raises(DefinitionError, match="readable UTF-8 text file"):
            RecordedExtractor(tmp_path / name)
