"""Real trajectories of other people's agents, through the command line (I1, issue figures)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import backstop

DATA = "data/tau-bench-gpt-4o-airline-trials-0-1.json"
GREETING = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello"}]


def imported(source: Path, out: Path, trial: int) -> Path:
    ran = backstop(
        *("ledger", "import", "--config", "backstop.yaml", "--agent", "airline"),
        *("--from", "chat", source, "--where", f"trial={trial}", "--run-field", "task_id"),
        *("--out", out),
    )
    assert (ran.code, ran.err) == (0, "")
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("airline")


@pytest.fixture(scope="module")
def trial_0(shared: Path, folder: Path) -> Path:
    return imported(shared / DATA, folder / "0.jsonl", 0)


@pytest.fixture(scope="module")
def trial_1(shared: Path, folder: Path) -> Path:
    return imported(shared / DATA, folder / "1.jsonl", 1)


@pytest.fixture(scope="module", params=["same step", "one step later"])
def lower_cased(request: pytest.FixtureRequest, shared: Path, folder: Path) -> Path:
    """Trial 0 with every reservation id lower-cased, as another version might ask for it.

    One step later, where a greeting goes before everything that was said.
    """
    entries = json.loads((shared / DATA).read_text(encoding="utf-8"))
    for entry in entries:
        if request.param == "one step later":
            entry["traj"][1:1] = GREETING
        for message in entry["traj"]:
            for call in message.get("tool_calls") or ():
                arguments = json.loads(call["function"]["arguments"])
                if "reservation_id" in arguments:
                    arguments["reservation_id"] = arguments["reservation_id"].lower()
                    call["function"]["arguments"] = json.dumps(arguments)
    source = folder / f"lower, {request.param}.json"
    source.write_text(json.dumps(entries), encoding="utf-8")
    return imported(source, source.with_suffix(".jsonl"), 0)


def counts(baseline: Path, candidate: Path, *options: str) -> tuple[int, dict[str, Any]]:
    ran = backstop("diff", baseline, candidate, "--format", "json", *options)
    told = json.loads(ran.out)
    assert told["exit_code"] == ran.code
    agent = told["agents"][0]
    assert agent["coverage"]["runs_compared"] == agent["coverage"]["runs_total"] == 50
    found = agent["counts"]
    return ran.code, {name: count for name, count in found.items() if count}


def test_trial_0_holds_50_committed_effects_in_50_runs(trial_0: Path) -> None:
    ran = backstop("ledger", "stats", trial_0, "--format", "json")
    told = json.loads(ran.out)
    assert told["runs"] == {"total": 50, "open": 0}
    assert told["events"]["effect_committed"] == 50
    assert backstop("ledger", "verify", trial_0, "--agent", "airline").code == 0


def test_trial_0_against_trial_1_gives_the_expected_figures(trial_0: Path, trial_1: Path) -> None:
    assert counts(trial_0, trial_1) == (
        1,
        {"match": 17, "mutated": 10, "duplicate": 1, "missing": 22, "extra": 32},
    )
    ran = backstop("diff", trial_0, trial_1)
    assert ran.code == 1
    assert ran.out.startswith("compared 50 of 50 runs\n")


def test_the_configuration_says_the_same_as_the_ledgers(trial_0: Path, trial_1: Path) -> None:
    stated = counts(trial_0, trial_1, "--config", "backstop.yaml", "--agent", "airline")
    assert stated == counts(trial_0, trial_1)


def test_trial_0_against_itself_matches_in_all(trial_0: Path) -> None:
    assert counts(trial_0, trial_0) == (0, {"match": 50})


def test_lower_cased_ids_are_33_duplicates_and_nothing_else(
    trial_0: Path, lower_cased: Path
) -> None:
    assert counts(trial_0, lower_cased) == (1, {"match": 17, "duplicate": 33})


def test_two_imports_are_the_same_bytes(shared: Path, trial_0: Path, tmp_path: Path) -> None:
    again = imported(shared / DATA, tmp_path / "again.jsonl", 0)
    assert again.read_bytes() == trial_0.read_bytes()
