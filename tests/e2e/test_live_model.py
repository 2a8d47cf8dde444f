"""``model: live``: a change of the prompt is judged by what the candidate's own model answers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backstop.core.verdict import Decision
from backstop.reports.document import document, read, render_json
from backstop.reports.terminal import render
from tests.e2e.living import REWORDED, as_recorded, change, digest, first
from tests.generating import KEY, calls, gemini, says

pytestmark = pytest.mark.filterwarnings("ignore")

NOBODY = "http://127.0.0.1:9"


def test_a_reworded_prompt_whose_model_answers_as_before_passes_with_its_cost(
    tmp_path: Path,
) -> None:
    """The control: without a live model the same change is no pass."""
    with gemini(as_recorded) as served:
        judged = change(tmp_path, served.url).judged()
    (found,) = judged.verdict.agents
    assert (found.decision, found.why) == (Decision.PASS, ())
    assert found.live is not None
    assert (found.live.calls, found.live.tokens_in, found.live.tokens_out) == (5, 50, 25)
    assert found.live.models == ("gemini-3.5-flash",)
    assert (found.coverage.drift, found.coverage.steps_assumed) == ("live", 0)
    assert found.counts["match"] == 2
    text = render(judged.verdict)
    assert "live model gemini-3.5-flash: 5 calls, 50 tokens in, 25 out, in 1 run" in text
    assert "PASS (exit code 0); 5 model calls" in text
    told: Any = document(judged.verdict, timing_ms={})
    assert told["agents"][0]["live"]["calls"] == 5
    assert read(render_json(judged.verdict, timing_ms={}).encode(), name="v").digest
    dumb = change(tmp_path / "control", NOBODY, head="live: false").verdict()
    assert (dumb.decision, dumb.live) == (Decision.INCONCLUSIVE, None)


def test_a_prompt_that_makes_the_model_pay_under_another_name_blocks(tmp_path: Path) -> None:
    def script(body: dict[str, Any]) -> Mapping[str, Any]:
        said = as_recorded(body)
        return first("ACME Corp.") if said == first("acme-corp") else said

    with gemini(script) as served:
        found = change(tmp_path, served.url).verdict()
    assert found.decision is Decision.BLOCK
    assert [one.divergence.reason.value for one in found.judged] == ["relabelled"]


def test_what_is_proven_is_not_asked(tmp_path: Path) -> None:
    """Full coverage costs nothing."""
    with gemini(as_recorded) as served:
        found = change(tmp_path, served.url, ("def before", "def  before")).verdict(based=True)
    assert served.requests == []
    assert found.decision is Decision.PASS
    assert found.live is not None
    assert found.live.calls == 0


def test_the_cassette_gives_the_same_verdict_without_a_model_or_a_key(tmp_path: Path) -> None:
    with gemini(as_recorded) as served:
        case = change(tmp_path, served.url)
        before = case.judged(cassette=True)
    again = case.judged(cassette=True, offline=True, environ={})
    assert before.verdict.decision is Decision.PASS
    assert digest(again) == digest(before)
    assert again.remarks == (
        "clerk: its model was asked 0 times, 5 answered calls are behind the verdict",
    )
    assert KEY not in case.cassette.read_text()


def test_d1_a_cassette_in_the_checkout_that_is_judged_is_told_as_its_authors_word(
    tmp_path: Path,
) -> None:
    """D1: a new one too, so that the same answers give the same verdict; the base's is not."""
    with gemini(as_recorded) as served:
        made = change(tmp_path, served.url)
        outside = made.verdict(cassette=True, based=True)
        case = replace(made, cassette=made.head / "answers.jsonl")
        before = case.judged(cassette=True, based=True)
    again = case.judged(cassette=True, based=True, offline=True, environ={})
    (found,) = again.verdict.agents
    assert outside.notes == ()
    (told,) = found.notes
    assert told.startswith("5 of the 5 answers of its live model are kept in answers.jsonl, in the")
    assert "and not in the base's: whoever wrote the change may have written them" in told
    assert digest(again) == digest(before)
    shutil.copy(case.cassette, case.base)
    assert case.verdict(cassette=True, based=True, offline=True).notes == ()
    (case.base / "answers.jsonl").write_text("none")
    assert case.verdict(cassette=True, based=True, offline=True).notes == found.notes
    alone = case.verdict(cassette=True, offline=True)
    assert not any("answers.jsonl" in note for note in alone.notes)


def test_a_request_that_the_cassette_lacks_is_no_pass_offline_and_is_asked_else(
    tmp_path: Path,
) -> None:
    with gemini(as_recorded) as served:
        case = change(tmp_path, served.url)
        case.judged(cassette=True)
        agent = case.head / "clerk" / "agent.py"
        agent.write_text(agent.read_text().replace("at once", "soon"))
        lacking = case.verdict(cassette=True, offline=True)
        assert lacking.decision is Decision.INCONCLUSIVE
        assert "the cassette has no answer to this request" in " ".join(lacking.why)
        assert len(served.requests) == 5
        assert case.verdict(cassette=True).decision is Decision.PASS
        assert len(served.requests) == 10


def test_an_answer_that_cannot_be_played_is_inconclusive_with_its_reason_and_its_cost(
    tmp_path: Path,
) -> None:
    """More of the kind: tests/unit/adapters/gemini, tests/unit/replay/test_broker.py."""
    answer = calls("launch")
    with gemini(lambda _: answer) as served:
        case = change(tmp_path, served.url)
        before = case.judged(cassette=True)
    (found,) = before.verdict.agents
    assert found.decision is Decision.INCONCLUSIVE
    assert "it calls 'launch', which is no tool that it was offered" in " ".join(found.why)
    assert found.live is not None
    assert found.live.calls == 1
    assert digest(case.judged(cassette=True, offline=True)) == digest(before)


def test_a_budget_that_is_used_up_is_inconclusive_and_says_what_was_spent(tmp_path: Path) -> None:
    def script(body: dict[str, Any]) -> Mapping[str, Any]:
        return {**as_recorded(body), "usageMetadata": {"promptTokenCount": 900}}

    with gemini(script) as served:
        case = change(tmp_path, served.url, more="tokens: 10000")
        judged = case.judged(cassette=True)
    (found,) = judged.verdict.agents
    assert found.decision is Decision.INCONCLUSIVE
    assert "may exceed the budget of 10,000" in " ".join(found.why)
    assert len(served.requests) == 2
    assert "2 model calls" in render(judged.verdict)
    assert digest(case.judged(cassette=True, offline=True)) == digest(judged)


def test_the_base_rules_how_a_model_is_asked(tmp_path: Path) -> None:
    """A change could pay for much, and send the key where it likes."""
    with gemini(as_recorded) as evil:
        case = change(tmp_path, NOBODY, more="calls: 1", head="live: true, calls: 900")
        head = case.head / "backstop.yaml"
        head.write_text(head.read_text().replace(NOBODY, evil.url))
        found = case.verdict(based=True)
    assert evil.requests == []
    assert found.decision is Decision.INCONCLUSIVE
    assert found.live is not None
    assert found.live.calls == 1


def test_a_model_that_the_base_does_not_ask_is_not_asked_unless_it_is_named(
    tmp_path: Path,
) -> None:
    dear = ("gemini-3.5-flash", "gemini-9-dear")
    with gemini(as_recorded) as served:
        found = change(tmp_path / "a", served.url, dear).verdict()
        assert served.requests == []
        assert "model gemini-9-dear may not be asked" in " ".join(found.why)
        case = change(tmp_path / "b", served.url, dear)
        base = case.base / "backstop.yaml"
        base.write_text(base.read_text().replace("gemini-3.5-flash", "gemini-9-dear"))
        found = case.verdict(based=True)
    assert found.decision is Decision.PASS
    assert found.live is not None
    assert (found.live.models, found.live.unusual) == (("gemini-9-dear",), ("gemini-9-dear",))


def test_without_a_key_it_is_said_which(tmp_path: Path) -> None:
    found = change(tmp_path, NOBODY).verdict(environ={})
    assert found.decision is Decision.INCONCLUSIVE
    assert "neither GOOGLE_API_KEY nor GEMINI_API_KEY is set" in " ".join(found.why)


class Wavering:
    """Pays under another name in some repeats: in those whose number is given."""

    def __init__(self, *odd: int) -> None:
        self._odd = odd
        self._repeat = 0

    def __call__(self, body: dict[str, Any]) -> Mapping[str, Any]:
        said = as_recorded(body)
        if said != first("acme-corp"):
            return said
        self._repeat += 1
        return first("ACME Corp.") if self._repeat in self._odd else said


@pytest.mark.parametrize(
    ("odd", "decision"),
    [((2,), Decision.INCONCLUSIVE), ((1, 3), Decision.BLOCK)],
    ids=["one of three", "two of three"],
)
def test_a_finding_counts_if_enough_repeats_show_it_and_fewer_are_no_pass(
    tmp_path: Path, odd: tuple[int, ...], decision: Decision
) -> None:
    with gemini(Wavering(*odd)) as served:
        case = change(tmp_path, served.url, more="repeats: 3, agreement: 2")
        before = case.judged(cassette=True)
    (found,) = before.verdict.agents
    assert found.decision is decision, found.why
    assert found.live is not None
    assert found.live.calls == 15
    if odd == (2,):
        assert "DUPLICATE of pay in step s0 shows in 1 of 3 replays" in " ".join(found.why)
    assert digest(case.judged(cassette=True, offline=True)) == digest(before)


def test_the_last_word_of_a_live_model_ends_the_step(tmp_path: Path) -> None:
    """It need not be as long as the record: what it leaves out is missing."""
    with gemini(lambda _: says("Nothing to do.")) as served:
        found = change(tmp_path, served.url).verdict()
    assert [one.divergence.kind.value for one in found.judged] == ["MISSING", "MISSING"]
    assert found.decision is Decision.PASS  # MISSING does not block by default


def test_a_live_model_may_go_on_beyond_the_record(tmp_path: Path) -> None:
    """Another order in the end is told, not cut off with the record."""

    def script(body: dict[str, Any]) -> Mapping[str, Any]:
        said = as_recorded(body)
        told = json.dumps(body["contents"])
        if said == says("Paid.") and "globex" not in told:
            return calls("pay", vendor="globex", amount=1)
        return said

    with gemini(script) as served:
        found = change(tmp_path, served.url).verdict()
    kinds = [(one.divergence.kind.value, one.divergence.assumed) for one in found.judged]
    assert kinds == [("EXTRA", False)], found
    assert REWORDED[1] in json.dumps(served.requests[0]["systemInstruction"])
