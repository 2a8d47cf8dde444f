"""The specimen through the real Runner: three versions against the committed ledger."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from backstop.core.ledgerfile import Ledger, read
from backstop.core.verdict import Decision
from backstop.replay.service import Replay
from tests.e2e.replaying import findings, replayed, verdict

ROOT = Path(__file__).parents[2]
SPECIMEN = ROOT / "examples/vendor_onboarding"


@cache
def ledger() -> Ledger:
    """The committed ledger."""
    path = ROOT / "ledgers/vendor-onboarding.jsonl"
    return read(path.read_bytes(), name=path.name)


@cache
def of(version: str) -> Replay:
    """One replay of a version, shared by the tests of this file."""
    return replayed(ledger(), SPECIMEN / version, workers=2)


def test_v1_the_version_that_wrote_the_ledger_asks_for_just_what_went_out() -> None:
    found = verdict(ledger(), of("v1"))
    assert found.counts["match"] == 42
    assert not findings(found)
    assert found.decision is Decision.PASS


def test_v2_drops_a_reminder_changes_an_amount_and_adds_a_mail() -> None:
    found = verdict(ledger(), of("v2"))
    assert sorted(findings(found)) == ["EXTRA new", "MISSING dropped", "MUTATED changed"]
    assert findings(found).total() == 3
    assert found.decision is Decision.PASS


def test_v3_would_order_three_times_again_under_another_spelling() -> None:
    found = verdict(ledger(), of("v3"))
    assert found.counts["match"] == 39
    assert findings(found) == {"DUPLICATE relabelled": 3}
    assert {one.divergence.tool for one in found.judged} == {"create_purchase_order"}
    assert found.decision is Decision.BLOCK


def test_every_run_is_replayed_to_its_end_without_drift() -> None:
    for version in ("v1", "v2", "v3"):
        for run in of(version).runs:
            assert (run.not_replayable, run.drift, run.steps_assumed) == (None, "none", 0)


def test_two_replays_are_identical_whatever_the_number_of_processes() -> None:
    again = replayed(ledger(), SPECIMEN / "v3", workers=1)
    first = of("v3")
    assert (again.header, again.intents, again.runs) == (first.header, first.intents, first.runs)
    assert again.logs == first.logs
    assert all(first.logs.values())
