"""The JSON verdict is API: its fields, its digest, its schema."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from backstop.core.verdict import Verdict
from backstop.errors import BackstopError
from backstop.reports.document import digest_of, document, json_schema, read, render_json
from backstop.reports.form import VerdictDocument
from tests.verdicts import (
    ACCEPTED,
    ATTACKED,
    BLOCKED,
    EMPTY,
    HOSTILE,
    INCONCLUSIVE,
    PASSED,
    RELABELLED,
    agent_verdict,
    divergence,
    half,
)

TIMING = {"load": 1.23456, "replay": 20.0, "verdict": 0.5}
ALL = [BLOCKED, INCONCLUSIVE, PASSED, ATTACKED, EMPTY, ACCEPTED]


@pytest.mark.parametrize("verdict", ALL)
def test_every_document_is_read_back_in_its_own_form(verdict: Verdict) -> None:
    text = render_json(verdict, timing_ms=TIMING)
    told = msgspec.json.decode(text, type=VerdictDocument)
    assert told.exit_code == verdict.exit_code
    assert len(told.agents) == len(verdict.agents)


def test_the_published_schema_is_the_documents() -> None:
    published = Path(__file__).parents[3] / "docs" / "verdict.schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == json_schema()


def test_the_fields_of_the_design_are_there_in_order() -> None:
    told = json.loads(render_json(BLOCKED, timing_ms=TIMING))
    assert list(told) == ["schema", "decision", "exit_code", "digest", "agents", "timing_ms"]
    assert (told["schema"], told["decision"], told["exit_code"]) == (
        "backstop.verdict/1",
        "BLOCK",
        1,
    )
    agent = told["agents"][0]
    assert list(agent)[:5] == ["agent", "decision", "ledger", "coverage", "counts"]
    assert agent["ledger"] == {
        "events": 1094,
        "effects": 42,
        "runs": 7,
        "digest": "sha256:" + "ab" * 32,
    }
    assert list(agent["counts"]) == [
        "match",
        "duplicate",
        "mutated",
        "missing",
        "extra",
        "absorbed",
        "in_doubt",
        "waived",
        "pre_existing",
        "known",
    ]
    assert list(agent["coverage"])[:6] == [
        "runs_compared",
        "runs_total",
        "steps_assumed",
        "drift",
        "not_replayable",
        "uncovered",
    ]
    assert list(agent["divergences"][0])[:13] == [
        "kind",
        "reason",
        "run",
        "step",
        "tool",
        "recorded",
        "intended",
        "paths",
        "difference",
        "suggestion",
        "fingerprint",
        "waiver",
        "pre_existing",
    ]
    assert told["timing_ms"] == {"load": 1.235, "replay": 20.0, "verdict": 0.5}


def test_arguments_are_told_exactly() -> None:
    big = 2**80 + 1
    one = divergence(
        RELABELLED.kind, RELABELLED.reason, half({"n": big, "d": Decimal("0.10")}), None
    )
    text = render_json(Verdict(agents=(agent_verdict(one),)), timing_ms={})
    assert f'"n": {big}' in text
    assert '"d": 0.10' in text


@pytest.mark.parametrize("verdict", ALL)
def test_the_digest_covers_everything_but_the_timings(verdict: Verdict) -> None:
    told = document(verdict, timing_ms=TIMING)
    later = document(verdict, timing_ms={"load": 99.0})
    assert told["digest"] == later["digest"] == digest_of(verdict)
    assert {**told, "timing_ms": None} == {**later, "timing_ms": None}


def test_any_other_change_changes_the_digest() -> None:
    agent = BLOCKED.agents[0]
    others = [
        Verdict(agents=(replace(agent, notes=("other",)),)),
        Verdict(agents=(replace(agent, agent="other"),)),
        Verdict(agents=(replace(agent, judged=agent.judged[1:]),)),
        Verdict(agents=(replace(agent, counts={**agent.counts, "failed": 3}),)),
        Verdict(agents=(agent, agent)),
    ]
    digests = [digest_of(verdict) for verdict in (BLOCKED, *others)]
    assert len(set(digests)) == len(digests)


def test_hostile_text_is_escaped_and_means_the_same() -> None:
    text = render_json(ATTACKED, timing_ms=TIMING)
    assert not set(text) & set("\x1b\x07\x9b\u202e\u2066\u200b\r")
    assert json.loads(text)["agents"][0]["agent"] == HOSTILE


def test_no_agent_at_all_is_inconclusive() -> None:
    told = json.loads(render_json(EMPTY, timing_ms={}))
    assert (told["decision"], told["exit_code"], told["agents"]) == ("INCONCLUSIVE", 3, [])


@pytest.mark.parametrize("verdict", ALL)
def test_a_report_is_read_back_if_it_is_as_it_was_written(verdict: Verdict) -> None:
    text = render_json(verdict, timing_ms=TIMING)
    told = read(text.encode(), name="F")
    assert told == msgspec.json.decode(text, type=VerdictDocument)
    later = text.replace("1.235", "9.5")
    assert read(later.encode(), name="F").timing_ms.load == 9.5


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ('"match": 39', '"match": 40', "was changed since"),
        ('"waived": 1,', '"waived": 0,', "was changed since"),
        ("sha256:", "sha256:0", "was changed since"),
        ("backstop.verdict/1", "backstop.verdict/2", "written in form 'backstop.verdict/2'"),
        ('"decision"', '"decisoin"', "no verdict that Backstop wrote"),
        ('"timing_ms"', '"agents": [], "timing_ms"', "no verdict that Backstop wrote"),
        ("{", "", "no verdict that Backstop wrote"),
    ],
)
def test_a_report_that_was_changed_is_refused(was: str, becomes: str, words: str) -> None:
    text = render_json(ACCEPTED, timing_ms=TIMING)
    assert was in text
    with pytest.raises(BackstopError, match=words) as caught:
        read(text.replace(was, becomes, 1).encode(), name="F")
    assert caught.value.slug == "verdict-damaged"
    assert str(caught.value).startswith("F: ")


def test_what_people_accepted_is_told() -> None:
    """Additions only: what was there before stays where it was."""
    told = json.loads(render_json(ACCEPTED, timing_ms={}))["agents"]
    assert told[0]["divergences"][0]["known"] is True
    assert told[0]["counts"]["known"] == 1
    assert [one["standing"] for one in told[0]["waivers"]] == ["used", "unused", "not counted"]
    assert told[0]["waivers"][0]["expires"] == "2026-12-14"
    assert (told[0]["baseline"]["known"], told[0]["baseline"]["gone"]) == (1, 3)
    assert (told[1]["waivers"], told[1]["baseline"]["added"]) == ([], 1)
