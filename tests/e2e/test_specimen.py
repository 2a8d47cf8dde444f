"""The committed specimen: its counts are a contract, and its recording is repeatable."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec
import pytest

from backstop.adapters.content import version_of
from backstop.core.events import (
    AttemptEnded,
    AttemptStarted,
    CallAnswered,
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Event,
    ModelAnswered,
    RunClosed,
    RunOpened,
    StepStarted,
    ToolRead,
)
from backstop.core.history import effect_rows
from backstop.core.ledgerfile import Ledger, read, verify

ROOT: Final = Path(__file__).parents[2]
EXAMPLE: Final = ROOT / "examples" / "vendor_onboarding"
LEDGER: Final = ROOT / "ledgers" / "vendor-onboarding.jsonl"


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return read(LEDGER.read_bytes(), name=LEDGER.name)


def of(ledger: Ledger, *kinds: type[Event]) -> list[Event]:
    return [event for event in ledger.events if isinstance(event, kinds)]


def test_it_holds_1094_events_42_committed_side_effects_and_seven_runs(ledger: Ledger) -> None:
    assert len(ledger.events) == 1094
    assert effect_rows([ledger.events]).committed == 42
    summary = verify([LEDGER.read_bytes()], name=LEDGER.name)
    assert (summary.events, summary.effects, summary.runs) == (1094, 42, 7)
    assert (summary.open_runs, summary.in_doubt) == (1, 0)


def test_recording_it_again_gives_the_same_bytes(tmp_path: Path) -> None:
    out = tmp_path / "again.jsonl"
    subprocess.run(
        [sys.executable, "-m", "examples.vendor_onboarding.record", "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "4711", "TZ": "Pacific/Auckland"},
        check=True,
        capture_output=True,
    )
    assert out.read_bytes() == LEDGER.read_bytes()


def test_version_1_wrote_every_row(ledger: Ledger) -> None:
    assert {event.v for event in ledger.events} == {version_of(EXAMPLE / "v1")}


def test_it_begins_on_a_monday_and_ends_in_the_sixth_week(ledger: Ledger) -> None:
    assert ledger.events[0].at.startswith("2026-03-02")
    assert ledger.events[-1].at.startswith("2026-04-09")
    assert [event.at for event in ledger.events] == sorted(event.at for event in ledger.events)


def test_every_mess_of_real_life_is_in_it(ledger: Ledger) -> None:
    answered = Counter(event.how for event in of(ledger, CallAnswered))  # type: ignore[union-attr]
    assert answered["recorded"] >= 2
    assert answered["held"] >= 2
    assert answered["in_doubt"] >= 1
    assert len(of(ledger, EffectFailed)) == 2
    assert len(of(ledger, EffectInDoubt)) == len(of(ledger, EffectResolved)) == 2
    assert any(event.error for event in of(ledger, ToolRead))  # type: ignore[union-attr]
    assert len(of(ledger, RunOpened)) == len(of(ledger, RunClosed)) + 1
    started, ended = of(ledger, AttemptStarted), of(ledger, AttemptEnded)
    assert len(started) - len(ended) == 4, "attempts that a crash cut off"


def test_a_failed_effect_was_committed_under_a_higher_fence(ledger: Ledger) -> None:
    committed = {e.key: e.fence for e in ledger.events if isinstance(e, EffectCommitted)}
    for failed in of(ledger, EffectFailed):
        assert isinstance(failed, EffectFailed)
        assert committed[failed.key] == failed.fence + 1


def test_an_approval_takes_days(ledger: Ledger) -> None:
    approvals = [
        event
        for event in ledger.events
        if isinstance(event, StepStarted) and event.trigger == "approval"
    ]
    assert len(approvals) == 3
    for approval in approvals:
        answer = msgspec.json.decode(approval.message)["parts"][0]["function_response"]
        asked = next(
            event
            for event in ledger.events
            if isinstance(event, EffectClaimed) and event.call == answer["id"]
        )
        assert asked.run == approval.run
        assert int(approval.at[8:10]) - int(asked.at[8:10]) >= 4


def test_calls_are_parallel_names_are_not_ascii_and_money_is_exact(ledger: Ledger) -> None:
    answers = [
        msgspec.json.decode(e.response) for e in ledger.events if isinstance(e, ModelAnswered)
    ]
    calls = [str(answer["content"]["parts"]).count("function_call") for answer in answers]
    assert max(calls) == 3
    text = LEDGER.read_text(encoding="utf-8")
    for name in ("Müller & Söhne", "Łódzka", "佐藤製作所", "São Caetano", "النجم", "Boréale"):
        assert name in text
    amounts = [bytes(e.args) for e in ledger.events if isinstance(e, EffectClaimed)]
    assert any(b'"amount":12500.125' in args for args in amounts)
    assert any(b'"amount":1299.9' in args for args in amounts)


def test_three_orders_went_to_acme_corp_and_nothing_else_bears_that_name(ledger: Ledger) -> None:
    named = [
        e for e in ledger.events if isinstance(e, EffectClaimed) and b"acme-corp" in bytes(e.args)
    ]
    assert [e.tool for e in named] == ["create_purchase_order"] * 3
    committed = {e.key for e in ledger.events if isinstance(e, EffectCommitted)}
    assert {e.key for e in named} <= committed
    assert LEDGER.read_bytes().count(b"acme-corp") == 3


def test_every_model_answer_knows_its_request(ledger: Ledger) -> None:
    models = of(ledger, ModelAnswered)
    assert all(event.request for event in models)  # type: ignore[union-attr]
    assert {event.agent for event in models} == {"reader", "drafter"}  # type: ignore[union-attr]


def test_each_cursor_vouches_for_the_effects_of_its_step(ledger: Ledger) -> None:
    vouched = [key for e in ledger.events if isinstance(e, CursorAdvanced) for key in e.effects]
    assert len(vouched) == len(set(vouched)) == 42


def test_lines_are_lean() -> None:
    data = LEDGER.read_bytes()
    assert len(data) / data.count(b"\n") < 520


@pytest.mark.parametrize(
    ("version", "lines"),
    [
        ("v2", 9),  # a reminder dropped, an amount changed, a mail added
        ("v3", 2),  # acme-corp -> ACME Corp
    ],
)
def test_versions_differ_only_in_their_change(version: str, lines: int) -> None:
    base = (EXAMPLE / "v1" / "agent.py").read_text(encoding="utf-8").splitlines()
    other = (EXAMPLE / version / "agent.py").read_text(encoding="utf-8").splitlines()
    changed = [line for line in difflib.ndiff(base, other) if line[:1] in "+-"]
    assert len(changed) == lines
