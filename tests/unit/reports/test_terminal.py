"""What a person reads: golden files, and laws that hold for every verdict."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from rich.cells import cell_len

from backstop.core.baseline import BaselineUse
from backstop.core.verdict import Decision, Judged, Verdict
from backstop.reports.terminal import render
from tests.verdicts import BLOCKED, CHANGED, DIGEST, NAMED, NEW, RELABELLED, agent_verdict


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_asked_or_ends_in_blanks(name: str, width: int) -> None:
    for line in render(NAMED[name], width=width).splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize("name", NAMED)
def test_no_hidden_character_reaches_the_terminal(name: str) -> None:
    text = render(NAMED[name])
    assert not any(
        unicodedata.category(character).startswith("C") and character != "\n" for character in text
    )


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("blocked", "compared 7 of 7 runs"),
        ("inconclusive", "compared 13 of 14 runs"),
        ("empty", "compared 0 of 0 runs"),
    ],
)
def test_the_first_line_says_how_much_was_compared(name: str, first: str) -> None:
    assert render(NAMED[name]).splitlines()[0] == first


@pytest.mark.parametrize("name", NAMED)
def test_decision_exit_code_and_model_calls_are_said(name: str) -> None:
    verdict = NAMED[name]
    text = render(verdict)
    assert f"(exit code {verdict.exit_code}); 0 model calls" in text
    assert "next: " in text


def test_colour_adds_nothing_but_colour() -> None:
    coloured = render(BLOCKED, colour=True)
    assert "\x1b[1;31mDEPLOY BLOCKED" in coloured
    assert "\x1b" not in render(BLOCKED)


def test_what_is_left_out_is_counted() -> None:
    text = render(Verdict(agents=(agent_verdict(*[NEW] * 53),)))
    assert "... and 3 more; --format json shows all of them" in text
    assert "... and 4 more arguments" in text


def test_g19_what_is_known_is_counted_on_top_and_hides_nothing_new() -> None:
    """G19: of 60 known and one new finding a person sees the new one, and that there are 60."""
    known = [Judged(divergence=RELABELLED, known=True)] * 60
    told = BaselineUse(date="2026-11-30", by="eva", ledger=DIGEST, findings=60, known=60)
    agent = agent_verdict(*known, NEW, Judged(divergence=CHANGED, waiver="agreed"), baseline=told)
    lines = render(Verdict(agents=(agent,))).splitlines()
    assert lines[1] == "60 known findings of the baseline of 2026-11-30 (eva) do not block"
    cards = [line for line in lines if line.startswith("╭")]
    assert [card.split()[1:3] for card in cards] == [["1", "EXTRA"], ["2", "MUTATED"]]


def test_every_finding_is_named_so_that_it_can_be_waived() -> None:
    text = render(BLOCKED)
    names = {one.divergence.fingerprint for one in BLOCKED.agents[0].judged}
    assert all(f"finding  {name}" in text or f"finding {name}" in text for name in names)


def test_a_pass_over_nothing_does_not_say_that_a_version_may_ship() -> None:
    passed = agent_verdict(decision=Decision.PASS)
    untried = replace(passed, coverage=replace(passed.coverage, runs_compared=0))
    assert "next: nothing was compared" in render(Verdict(agents=(untried,)))
    assert "next: nothing blocks" in render(Verdict(agents=(untried, passed)))


def test_nobody_is_told_to_look_at_findings_that_are_known_and_not_shown() -> None:
    known, new = Judged(divergence=CHANGED, known=True), Judged(divergence=CHANGED)
    for found, warned in (((known,), False), ((known, new), True)):
        text = render(Verdict(agents=(agent_verdict(*found, decision=Decision.PASS),)))
        assert ("PASS with warnings" in text) is warned
        assert ("look at each finding" in text) is warned
