"""Deliberate repeats (F28, F33, ADR 0019): recorded behind the guard, verified, and gated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from backstop.core import ledgerfile
from backstop.core.declaration import Declaration
from backstop.core.events import CallAnswered, EffectClaimed, EffectCommitted
from backstop.core.history import effect_rows
from backstop.core.ledgerfile import Ledger
from backstop.core.sealing import seal_lines
from backstop.core.verdict import Decision
from backstop.guard.claims.capability import downstream_key
from tests.e2e.replaying import findings, replayed, verdict
from tests.e2e.studio import Studio, called, said

pytestmark = pytest.mark.filterwarnings("ignore")

AGENT = '''
from google.adk.agents import LlmAgent

PAID = []


def pay(order: str, amount: int, confirm_duplicate: bool = False, week: str = "") -> dict:
    """Pays."""
    PAID.append(order)
    return {"payment": len(PAID)}


root_agent = LlmAgent(name="desk", model="gemini-3.5-flash", instruction="Pay.", tools=[pay])
'''
PAY = Declaration(tool="pay", identity=("order",), fields={"confirm_duplicate": ("override",)})


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    """A place for versions."""
    return Studio(folder=tmp_path)


def paid(**more: Any) -> list[Any]:
    return called(("pay", {"order": "7", "amount": 5, **more}))


def recorded(studio: Studio, *steps: list[Any], declared: Declaration = PAY) -> Ledger:
    """What the guard writes where each step makes one call; `ledger verify` accepts it."""
    agent = studio.version("v1", AGENT)
    answers = [answer for step in steps for answer in (step, said("done"))]
    ledger = studio.ledger(
        agent,
        steps=[f"tick {number}" for number in range(len(steps))],
        models={"desk": answers},
        declared={"pay": declared},
    )
    ledgerfile.verify((b"".join(seal_lines(ledger.header, list(ledger.events))),), name="x")
    return ledger


def results(ledger: Ledger) -> list[Any]:
    return [
        msgspec.json.decode(event.result)
        for event in ledger.events
        if isinstance(event, EffectCommitted)
    ]


def claims(ledger: Ledger) -> list[EffectClaimed]:
    return [event for event in ledger.events if isinstance(event, EffectClaimed)]


def answers(ledger: Ledger) -> list[str]:
    return [event.how for event in ledger.events if isinstance(event, CallAnswered)]


def test_f33_a_confirmed_duplicate_goes_out_once_more_and_says_why(studio: Studio) -> None:
    """F33: pay{5}, then pay{5, confirm_duplicate: true}: one key, the flag an override."""
    ledger = recorded(studio, paid(), paid(confirm_duplicate=True))
    first, again = claims(ledger)
    assert first.key == again.key
    assert (first.override, again.override) == (None, '{"confirm_duplicate":true}')
    assert (first.fence, again.fence) == (1, 2)
    assert results(ledger) == [{"payment": 1}, {"payment": 2}]
    # A provider that acts once on a key would otherwise swallow the repeat.
    assert downstream_key(first) != downstream_key(again)
    assert downstream_key(first) == first.key


def test_f33_the_same_override_again_gets_the_second_result(studio: Studio) -> None:
    """F33, ADR 0019: an override is good for one repeat."""
    ledger = recorded(studio, paid(), paid(confirm_duplicate=True), paid(confirm_duplicate=True))
    assert results(ledger) == [{"payment": 1}, {"payment": 2}]
    assert answers(ledger) == ["recorded"]


def test_f33_without_the_flag_the_repeat_is_answered_from_the_record(studio: Studio) -> None:
    """F33: the control of the others."""
    ledger = recorded(studio, paid(), paid())
    assert results(ledger) == [{"payment": 1}]
    assert answers(ledger) == ["recorded"]


def test_f28_an_occurrence_makes_two_effects_and_a_retry_of_either_none(studio: Studio) -> None:
    """F28: the field that tells periods apart is part of the key; minutes and ids are not."""
    weekly = Declaration(tool="pay", identity=("order",), occurrence="week")
    ledger = recorded(studio, paid(week="10"), paid(week="11"), paid(week="10"), declared=weekly)
    assert len({claim.key for claim in claims(ledger)}) == 2
    assert results(ledger) == [{"payment": 1}, {"payment": 2}]
    assert answers(ledger) == ["recorded"]


def test_f28_the_step_itself_may_be_the_occurrence(studio: Studio) -> None:
    """F28: a weekly reminder of equal content."""
    each = Declaration(tool="pay", identity=("order",), occurrence="step")
    ledger = recorded(studio, paid(), paid(), declared=each)
    assert results(ledger) == [{"payment": 1}, {"payment": 2}]


def test_a_version_that_is_unchanged_passes_over_a_ledger_with_repeats(studio: Studio) -> None:
    """F28, F33: what was repeated on purpose is history, and asked for again as such."""
    steps = (paid(), paid(confirm_duplicate=True), paid(confirm_duplicate=True), paid())
    ledger = recorded(studio, *steps)
    history = effect_rows([ledger.events])
    assert [row.outcome.value for row in history.rows] == ["committed", "committed"]
    candidate = replayed(ledger, studio.folder / "v1" / "desk", declarations={"pay": PAY})
    found = verdict(ledger, candidate, declarations={"pay": PAY})
    assert (found.decision, dict(findings(found))) == (Decision.PASS, {})
    assert found.counts["match"] == 2


def test_a_version_that_repeats_without_a_reason_is_found(studio: Studio) -> None:
    """F33: the flag is gone in the new version's call; the record's repeat is missing then."""
    ledger = recorded(studio, paid(), paid(confirm_duplicate=True))
    # The instruction stays, so the recorded answers hold; what changes is what the tool takes.
    changed = studio.version(
        "v2", AGENT, ("confirm_duplicate: bool = False, ", "confirm: bool = False, ")
    )
    found = verdict(
        ledger, replayed(ledger, changed, declarations={"pay": PAY}), declarations={"pay": PAY}
    )
    assert found.decision is not Decision.PASS
