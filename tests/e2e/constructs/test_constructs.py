"""Every construct of the framework, recorded by our plugin and replayed: what the gate says of it.

On the oldest framework that is supported and on the newest. A version that spells its orders
otherwise is the control: whoever passes the unchanged one must not be blind to that one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.command import ROOT, backstop
from tests.e2e.constructs.recorded import AGENTS, FRAMEWORKS, configured, recorded
from tests.e2e.constructs.scripts import CONSTRUCTS, RELABELS, Construct

TABLE: Final = ROOT / "docs/constructs.md"

SPARED: Final = frozenset(
    {
        "agent_tool_apart",
        "code_built_in",
        "mcp_prompt",
        "sub_agents",
        "parallel",
        "loop",
        "confirmation",
        "code_executor",
    }
)
"""Relabelled on the newest framework only, to save time: what they do is the same on both."""

Verdicts = dict[str, dict[str, Any]]


def changed(folder: Path, version: str, change: Callable[[Construct, str], str | None]) -> None:
    """Make a version of the agents that `change` has another text for."""
    for one in CONSTRUCTS:
        text = change(one, (folder / "v1" / one.name / "agent.py").read_text(encoding="utf-8"))
        if text is not None:
            shutil.copytree(folder / "v1" / one.name, folder / version / one.name)
            (folder / version / one.name / "agent.py").write_text(text, encoding="utf-8")


def relabelled(one: Construct, text: str, *, apart_from: frozenset[str]) -> str | None:
    """Every order by another spelling."""
    if one.name in apart_from:
        return None
    return text + RELABELS if one.relabels is None else replaced(text, one.relabels)


def dropping(one: Construct, text: str) -> str | None:
    """One order that is not asked for any more; None where that takes more than a line."""
    return None if one.drops is None else replaced(text, one.drops)


def replaced(text: str, change: tuple[str, str]) -> str:
    """The text, changed in a place that must be there."""
    assert change[0] in text
    return text.replace(*change)


def judged(folder: Path, version: str, python: Path) -> Verdicts:
    """What the gate says of each agent of a version."""
    configured(folder, version, python, CONSTRUCTS)
    ran = backstop("gate", "--config", folder / f"{version}.yaml", "--format", "json")
    assert ran.out, ran
    return {agent["agent"]: agent for agent in json.loads(ran.out)["agents"]}


def as_expected(one: Construct, verdict: dict[str, Any]) -> bool:
    """Is this the verdict on an unchanged version, for the reason that is named?"""
    coverage = verdict["coverage"]
    if one.why:
        named = [why for why in verdict["why"] if one.why in why]
        return verdict["decision"] == "INCONCLUSIVE" and bool(named)
    whole = (coverage["drift"], coverage["uncovered"], coverage["steps_assumed"]) == ("none", [], 0)
    return verdict["decision"] == "PASS" and whole and verdict["counts"]["match"] == one.effects


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_each_construct_is_judged_as_the_table_says(framework: str, tmp_path: Path) -> None:
    python = FRAMEWORKS[framework] / "bin/python"
    recorded(tmp_path, python, CONSTRUCTS)
    out = (tmp_path / "out").read_text(encoding="utf-8").splitlines()
    assert [line.split()[0] for line in out].count("add_row") == 4  # a real server was asked
    assert 'POST {"order":"a7"}' in out

    same = judged(tmp_path, "v1", python)
    assert [one.name for one in CONSTRUCTS if not as_expected(one, same[one.name])] == [], same

    spared = SPARED if framework == "oldest" else frozenset()
    changed(tmp_path, "relabels", lambda one, text: relabelled(one, text, apart_from=spared))
    other = judged(tmp_path, "relabels", python)
    assert other.keys() == {one.name for one in CONSTRUCTS} - spared
    for one in CONSTRUCTS:
        if (found := other.get(one.name)) is None:
            continue
        if not one.blocks:
            assert found["decision"] == same[one.name]["decision"], found
            continue
        assert found["decision"] == "BLOCK", found
        assert {d["reason"] for d in found["divergences"]} == {"relabelled"}, found

    if framework == "newest":
        changed(tmp_path, "drops", dropping)
        for name, found in judged(tmp_path, "drops", python).items():
            assert (name, found["counts"]["missing"]) == (name, 1), found
    after = (tmp_path / "out").read_text(encoding="utf-8").splitlines()
    assert after == out  # no replay asked a server for anything


def test_the_table_of_constructs_says_what_is_tested() -> None:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "`" in line]
    told = {row[0].strip("`"): row[1:] for row in rows if len(row) == 5}
    assert set(told) == {one.name for one in CONSTRUCTS} == {p.name for p in AGENTS.iterdir()}
    for one in CONSTRUCTS:
        _, unchanged, other, dropped = told[one.name]
        assert unchanged.startswith("INCONCLUSIVE" if one.why else "PASS"), one.name
        assert one.why in unchanged, one.name
        assert other == ("BLOCK" if one.blocks else "INCONCLUSIVE"), one.name
        assert dropped == ("MISSING" if one.drops else ""), one.name
