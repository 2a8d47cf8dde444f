"""The sample pull requests of `examples/prompt_changes`: each kind with its verdict, as reviewed.

`make golden` rewrites the files.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from backstop.config import load
from backstop.core.history import effect_rows
from backstop.core.ledgerfile import Ledger, read
from backstop.core.verdict import Decision, Policy, Verdict
from backstop.gate.comparing import Asked
from backstop.gate.judge import Recorded, judge, rule_sets
from backstop.replay.service import Replay
from backstop.reports.terminal import render
from tests.e2e.command import ROOT, backstop
from tests.e2e.replaying import SANDBOX, asked, replayed
from tests.golden.test_cli import scrubbed

EXAMPLE = ROOT / "examples/prompt_changes"
LEDGER = EXAMPLE / "refund-desk.jsonl"
AGENT = load(EXAMPLE / "backstop.yaml").agent("refund-desk")
ELSEWHERE = replace(SANDBOX, world=1)

KINDS = {
    "instruction": Decision.INCONCLUSIVE,
    "tool_description": Decision.INCONCLUSIVE,
    "model_settings": Decision.INCONCLUSIVE,
    "contents": Decision.INCONCLUSIVE,
    "refactor": Decision.PASS,
    "relabel": Decision.BLOCK,
}
"""What a pull request of each kind comes to, replayed once."""


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return read(LEDGER.read_bytes(), name=LEDGER.name)


@pytest.fixture(scope="module")
def control(ledger: Ledger) -> Replay:
    """The version that runs now, replayed: once for all kinds."""
    declared = dict(AGENT.declarations)
    return replayed(ledger, EXAMPLE / "desk", declarations=declared, is_control=True)


def of(ledger: Ledger, candidate: Asked, control: Asked) -> Verdict:
    """The gate's word, as the command gives it."""
    found = judge(
        Recorded(header=ledger.header, history=effect_rows([ledger.events]), digest=ledger.digest),
        candidate,
        control=control,
        declarations=rule_sets(ledger.header, AGENT.declarations, AGENT.declarations),
        policies=[Policy()],
        namespace=AGENT.namespace,
        guarded=True,
    )
    return Verdict(agents=(found,))


@pytest.mark.parametrize("kind", KINDS)
def test_the_verdict_on_a_sample_pull_request_is_as_reviewed(
    kind: str, ledger: Ledger, control: Replay, golden: Callable[[str, str], None]
) -> None:
    declared = dict(AGENT.declarations)
    candidate = replayed(ledger, EXAMPLE / kind, declarations=declared, base=control)
    verdict = of(ledger, asked(candidate), asked(control))
    assert verdict.decision is KINDS[kind]
    if verdict.decision is Decision.INCONCLUSIVE:
        # D2: answered from the old record, a rewritten prompt shows no difference.
        assert not verdict.agents[0].judged
        assert verdict.agents[0].coverage.steps_assumed > 0
    golden(f"prompt_changes/{kind}.txt", scrubbed(render(verdict)))


def test_chance_in_an_argument_blames_nobody_once_both_versions_are_replayed_again(
    ledger: Ledger, control: Replay, golden: Callable[[str, str], None]
) -> None:
    """With one replay it is a DUPLICATE, whoever brought it in."""
    declared = dict(AGENT.declarations)
    new = replayed(ledger, EXAMPLE / "unstable", declarations=declared, base=control)
    once = of(ledger, asked(new), asked(control))
    assert once.decision is Decision.BLOCK
    old_again = replayed(
        ledger, EXAMPLE / "desk", declarations=declared, is_control=True, sandbox=ELSEWHERE
    )
    new_again = replayed(
        ledger, EXAMPLE / "unstable", declarations=declared, base=old_again, sandbox=ELSEWHERE
    )
    twice = of(
        ledger,
        replace(asked(new), again=[asked(new_again)]),
        replace(asked(control), again=[asked(old_again)]),
    )
    assert twice.decision is Decision.INCONCLUSIVE
    golden("prompt_changes/unstable.txt", scrubbed(render(twice)))


def test_the_command_says_the_same(golden: Callable[[str, str], None]) -> None:
    """The command of the README, on the kind that takes the most; it tells what that took."""
    ran = backstop(
        *("gate", "--config", EXAMPLE / "backstop.yaml", "--base", EXAMPLE / "desk"),
        *("--candidate", EXAMPLE / "unstable", "--repeat", "2"),
    )
    assert ran.code == 3, ran
    assert re.fullmatch(
        r"note: refund-desk: replayed once more with another clock and chance, in \d+\.\d s\n",
        ran.err,
    )
    golden("prompt_changes/unstable.txt", scrubbed(ran.out))


def test_the_ledger_of_the_example_is_recorded_anew_byte_for_byte(tmp_path: Path) -> None:
    out = tmp_path / "again.jsonl"
    subprocess.run(
        [sys.executable, "-m", "examples.prompt_changes.record", "--out", str(out)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    assert out.read_bytes() == LEDGER.read_bytes()


def test_every_kind_stands_in_the_readme_with_its_verdict() -> None:
    told = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in told.splitlines() if line.startswith("| `")}
    for kind, decision in {**KINDS, "unstable": Decision.INCONCLUSIVE}.items():
        assert decision.value in rows[kind]
    folders = {path.parent.name for path in EXAMPLE.glob("*/agent.py")} - {"desk"}
    assert folders <= rows.keys()
