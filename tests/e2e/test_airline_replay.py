"""The airline desk on the real framework, against what other people's agent did (issue figures).

The record is trial 0 of the trajectories beside the project, imported: 50 runs, 50 effects,
no request digests, and call ids that repeat within a run.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.command import ROOT, backstop

AIRLINE = ROOT / "examples/airline"
DESK, LOWERCASE = AIRLINE / "desk", AIRLINE / "desk_lowercase"
DATA = "data/tau-bench-gpt-4o-airline-trials-0-1.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """How a gate ended: the exit code, and what it says of the one agent."""

    code: int
    agent: dict[str, Any]

    @property
    def counts(self) -> dict[str, int]:
        """The counts that are not zero."""
        return {name: count for name, count in self.agent["counts"].items() if count}

    @property
    def compared(self) -> tuple[int, int]:
        """Runs compared, of how many."""
        coverage = self.agent["coverage"]
        return coverage["runs_compared"], coverage["runs_total"]


Gate = Callable[..., Gated]


def gate_on(shared: Path, folder: Path, **where: str) -> Gate:
    """A gate on the ledger of some trajectories; one verdict for each pair of versions."""
    ledger, config = folder / "airline.jsonl", folder / "backstop.yaml"
    chosen = [f"--where={name}={value}" for name, value in where.items()]
    ran = backstop(
        *("ledger", "import", "--config", "backstop.yaml", "--agent", "airline"),
        *("--from", "chat", shared / DATA, "--run-field", "task_id"),
        *chosen,
        *("--out", ledger),
    )
    assert (ran.code, ran.err) == (0, "")
    stated = yaml.safe_load((ROOT / "backstop.yaml").read_text(encoding="utf-8"))
    airline = {**stated["agents"]["airline"], "path": str(DESK), "ledger": ledger.name}
    config.write_text(yaml.safe_dump({"version": 1, "agents": {"airline": airline}}))

    @cache
    def gate(candidate: Path, base: Path | None = None) -> Gated:
        against = ("--base", base) if base else ()
        ran = backstop(
            *("gate", "--config", config, "--agent", "airline", "--format", "json"),
            *("--candidate", candidate, *against),
        )
        told = json.loads(ran.out)
        assert told["exit_code"] == ran.code
        return Gated(code=ran.code, agent=told["agents"][0])

    return gate


@pytest.fixture(scope="module")
def gate(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Gate:
    """On all of trial 0."""
    return gate_on(shared, tmp_path_factory.mktemp("airline"), trial="0")


def test_the_desk_asks_for_just_what_went_out_in_all_50_runs(gate: Gate) -> None:
    gated = gate(DESK, DESK)
    assert gated.compared == (50, 50)
    assert gated.counts == {"match": 50}
    assert gated.agent["other_counts"]["failed"] == 17
    assert gated.agent["divergences"] == []
    assert gated.agent["coverage"]["steps_assumed"] == 0
    assert gated.agent["why"] == []
    assert (gated.code, gated.agent["decision"]) == (0, "PASS")


def test_a5_without_a_control_run_nobody_knows_what_the_models_were_asked(gate: Gate) -> None:
    """A5: imported rows carry no digests; drift is unknown, so this is no pass."""
    gated = gate(DESK)
    assert gated.compared == (50, 50)
    assert (gated.code, gated.agent["decision"]) == (3, "INCONCLUSIVE")
    assert gated.agent["coverage"]["drift"] == "unknown"
    (why,) = gated.agent["why"]
    assert "does not say what its models were asked" in why
    assert "--base" in why


def test_lower_cased_ids_would_do_33_things_again(gate: Gate) -> None:
    """G1: of 17 calls that had failed, the 13 with an id pair with their failed rows."""
    gated = gate(LOWERCASE, DESK)
    assert gated.compared == (50, 50)
    assert gated.counts == {"match": 17, "duplicate": 33}
    assert gated.agent["other_counts"]["failed"] == 17
    assert {(d["kind"], d["reason"]) for d in gated.agent["divergences"]} == {
        ("DUPLICATE", "relabelled")
    }
    assert all(d["paths"] == ["/reservation_id"] for d in gated.agent["divergences"])
    assert not any(d["assumed"] for d in gated.agent["divergences"])
    assert gated.agent["coverage"]["steps_assumed"] == 0
    assert (gated.code, gated.agent["decision"]) == (1, "BLOCK")


def test_no_tool_of_the_desk_runs_in_a_replay(shared: Path, tmp_path: Path) -> None:
    """Its tools' bodies end the process here; run 13 calls reads and effects, with failures."""
    armed = tmp_path / "armed"
    shutil.copytree(DESK, armed, ignore=shutil.ignore_patterns("__pycache__"))
    source = (armed / "desk.py").read_text(encoding="utf-8")
    body = "    SIDE_EFFECTS.append((tool, what))\n"
    assert source.count(body) == 1
    (armed / "desk.py").write_text(source.replace(body, f"    __import__('os')._exit(9)\n{body}"))
    gated = gate_on(shared, tmp_path, trial="0", task_id="13")(armed, armed)
    assert gated.compared == (1, 1)
    assert gated.counts["match"] > 0
    assert gated.code == 0


def test_a_prompt_that_changes_is_no_pass(shared: Path, tmp_path: Path) -> None:
    """A5, D2: answered from the old record, another instruction shows no difference."""
    reworded = tmp_path / "reworded"
    shutil.copytree(DESK, reworded, ignore=shutil.ignore_patterns("__pycache__"))
    source = (reworded / "desk.py").read_text(encoding="utf-8")
    (reworded / "desk.py").write_text(source.replace("a plain yes", "a signature"))
    gated = gate_on(shared, tmp_path, trial="0", task_id="13")(reworded, DESK)
    assert gated.code == 3
    assert gated.agent["coverage"]["drifted"] == {"desk": ["instruction"]}


def test_both_folders_hold_the_same_desk_but_for_the_callback() -> None:
    """A folder is a version by itself, so what they share is there twice."""
    assert (LOWERCASE / "desk.py").read_bytes() == (DESK / "desk.py").read_bytes()


def test_the_desk_has_the_tools_of_the_configuration() -> None:
    stated = yaml.safe_load((ROOT / "backstop.yaml").read_text(encoding="utf-8"))
    offered = re.findall(r"^def ([a-z]\w+)\(", (DESK / "desk.py").read_text("utf-8"), re.MULTILINE)
    assert sorted(offered) == sorted(stated["agents"]["airline"]["tools"])
    assert len(offered) == 14
