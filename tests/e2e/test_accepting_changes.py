"""A pull request that edits what a tool does inside, and gets through by a review (D4, D7)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Ran, backstop
from tests.e2e.test_cli_waivers import AGENT, EVA, LEDGER, SPECIMEN, TOOLS

WHY = ("--reason", "the subject, read and tested")


def checkout(folder: Path, *, gate: str = "{}", edit: tuple[str, str] = ("", "")) -> Path:
    """A checkout of the specimen, with a text of its agent replaced."""
    shutil.copytree(SPECIMEN / "v1", folder / "agent", dirs_exist_ok=True)
    agent = folder / "agent" / "agent.py"
    text = (SPECIMEN / "v1" / "agent.py").read_text(encoding="utf-8")
    assert edit[0] in text
    agent.write_text(text.replace(*edit, 1) if edit[0] else text, encoding="utf-8")
    file = folder / "backstop.yaml"
    file.write_text(
        f"version: 1\nagents:\n  {AGENT}:\n    path: agent\n    ledger: '{LEDGER}'\n{TOOLS}"
        f"gate: {gate}\nsandbox: {{cpus: 1}}\n",
        encoding="utf-8",
    )
    return file


def gated(head: Path, base: Path, *more: str | Path) -> Ran:
    return backstop("gate", "--config", head, "--base", base.parent, *more)


def told(ran: Ran) -> dict[str, Any]:
    (agent,) = json.loads(ran.out)["agents"]
    return dict(agent)


def edited(what: str) -> tuple[str, str]:
    """An edit of the first tool's body."""
    text = (SPECIMEN / "v1" / "agent.py").read_text(encoding="utf-8")
    body = next(line for line in text.splitlines() if line.startswith("    return "))
    return (f"{body}\n", f"    {what!r}\n{body}\n")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return checkout(tmp_path / "base")


def test_d7_a_body_that_a_person_accepted_passes_until_it_is_edited_once_more(
    tmp_path: Path, base: Path
) -> None:
    """D7, D4: inconclusive for ever otherwise; and what was agreed to is this very edit."""
    head = checkout(tmp_path / "head", edit=edited("one"))
    report = tmp_path / "head.json"
    ran = gated(head, base, "--format", "json", "--output", report)
    assert ran.code == 3
    (agent,) = json.loads(report.read_text(encoding="utf-8"))["agents"]
    (one,) = agent["coverage"]["unshown"]
    assert (one["told"], one["waiver"]) == (agent["coverage"]["uncovered"][0], None)
    assert f"  finding {one['fingerprint']}" in gated(head, base).out.splitlines()
    name = one["fingerprint"][:8]
    ran = backstop("waive", name, *WHY, *EVA, "--verdict", report, "--config", head)
    assert (ran.code, ran.err) == (0, "")
    assert f"UNCOVERED {one['fingerprint']} of {AGENT}" in ran.out
    ran = gated(head, base)
    lines = ran.out.splitlines()
    assert (ran.code, lines[1]) == (0, "accepted: 1 change that no replay shows")
    assert lines[2].startswith("this change waives 1 change that no replay shows:")
    assert "PASS with warnings" in ran.out
    checkout(tmp_path / "head", edit=edited("two"))
    ran = gated(head, base, "--format", "json")
    assert ran.code == 3
    assert [use["standing"] for use in told(ran)["waivers"]] == ["unused"]
    assert told(ran)["coverage"]["accepted"] == 0


def alone(folder: Path, edit: tuple[str, str]) -> Path:
    """A checkout that is all one agent: what the gate reads lies beside ``agent.py``."""
    made = checkout(folder / "made", edit=edit)
    for file in sorted((folder / "made/agent").iterdir()):
        if file.is_file():
            shutil.copy(file, folder)
    file = folder / "backstop.yaml"
    text = made.read_text(encoding="utf-8").replace("path: agent\n", "path: .\n")
    file.write_text(f"# {folder.name}\n{text}", encoding="utf-8")
    shutil.rmtree(folder / "made")
    return file


@pytest.mark.parametrize(("note", "code"), [("one", 0), ("backstop-waivers.yaml", 3)])
def test_d4_waivers_beside_the_agents_code_count_and_are_no_file_that_changed_unread(
    tmp_path: Path, note: str, code: int
) -> None:
    """D4, D7: unless the agent names the file, and so may read it."""
    base, head = alone(tmp_path / "base", ("", "")), alone(tmp_path / "head", edited(note))
    (one,) = told(gated(head, base, "--format", "json"))["coverage"]["unshown"]
    ran = backstop("waive", one["fingerprint"], *WHY, *EVA, "--config", head)
    assert (ran.code, ran.err) == (0, "")
    assert (head.parent / "backstop-waivers.yaml").exists()
    ran = gated(head, base, "--format", "json")
    unread = [line for line in told(ran)["coverage"]["uncovered"] if "no run read it" in line]
    assert ran.code == code, unread
    assert unread == (["backstop-waivers.yaml is new and no run read it"] if code else [])


def test_d4_a_strict_base_does_not_count_what_the_change_accepts_itself(
    tmp_path: Path,
) -> None:
    base = checkout(tmp_path / "base", gate="{waivers: base}")
    head = checkout(tmp_path / "head", edit=edited("one"))
    (one,) = told(gated(head, base, "--format", "json"))["coverage"]["unshown"]
    ran = backstop("waive", one["fingerprint"], *WHY, *EVA, "--config", head)
    assert (ran.code, ran.err) == (0, "")
    ran = gated(head, base, "--format", "json")
    assert ran.code == 3
    (use,) = told(ran)["waivers"]
    assert (use["standing"], use["matched"], use["waived"]) == ("not counted", 1, 0)
