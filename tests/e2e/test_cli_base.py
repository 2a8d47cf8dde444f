"""`gate --base`: what a pull request may not say about itself (D1, D5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backstop.core.declaration import Declaration
from backstop.core.sealing import seal_lines
from tests.e2e.command import Ran, backstop, refused
from tests.e2e.studio import Studio, called, said

pytestmark = pytest.mark.filterwarnings("ignore")

AGENT = '''
import pathlib

from google.adk.agents import LlmAgent


def pay(vendor: str) -> dict:
    """Pays."""
    return {"ok": True}


def before(tool, args, tool_context):
    pass


root_agent = LlmAgent(
    name="desk", model="gemini-3.5-flash", tools=[pay], before_tool_callback=before
)
'''


def checkout(folder: Path, agents: str, *, more: str = "") -> Path:
    """A checkout that holds this configuration."""
    folder.mkdir(exist_ok=True)
    (folder / "backstop.yaml").write_text(f"version: 1\nagents:\n{agents}{more}", encoding="utf-8")
    return folder


def gated(head: Path, base: Path, *more: str) -> Ran:
    """The verdict on one checkout with another as its base."""
    return backstop("gate", "--config", head / "backstop.yaml", "--base", base, *more)


def why(ran: Ran) -> dict[str, tuple[str, list[str]]]:
    """By agent, its decision and the reasons."""
    return {
        agent["agent"]: (agent["decision"], agent["why"]) for agent in json.loads(ran.out)["agents"]
    }


def test_d5_an_agent_that_a_change_takes_out_of_the_configuration_is_missed(
    tmp_path: Path,
) -> None:
    """D5: its ledger is still there; nobody looks at it any more."""
    base = checkout(tmp_path / "base", "  a: {path: ., ledger: a.jsonl}\n")
    head = checkout(tmp_path / "head", "  fresh: {path: .}\n")
    ran = gated(head, base, "--format", "json")
    assert ran.code == 3
    assert why(ran) == {
        "fresh": ("PASS", ["NEW: the base does not have this agent"]),
        "a": ("INCONCLUSIVE", ["its entry in the configuration vanished"]),
    }


def test_a_base_without_a_configuration_is_told_from_an_agents_folder_by_its_history(
    tmp_path: Path,
) -> None:
    """D5: in the pull request that brings Backstop in, the base has the agent and no word of it."""
    head = checkout(tmp_path / "head", "  fresh: {path: desk, ledger: not-yet.jsonl}\n")
    base = tmp_path / "base"
    for top in (head, base):
        (top / "desk").mkdir(parents=True)
        (top / "desk" / "agent.py").write_text(AGENT, encoding="utf-8")
        (top / ".git").mkdir()
    ran = gated(head, base, "--format", "json")
    assert ran.code == 3
    assert why(ran) == {"fresh": ("PASS", ["NEW: the base does not have this agent"])}
    assert gated(head, base, "--allow-empty").code == 0


def test_d5_an_agent_that_is_new_and_alone_is_no_pass(tmp_path: Path) -> None:
    """D5: NEW is neutral, so nobody decides."""
    base = checkout(tmp_path / "base", "  other: {path: .}\n")
    head = checkout(tmp_path / "head", "  fresh: {path: ., ledger: not-yet.jsonl}\n")
    ran = gated(head, base, "--format", "json")
    assert ran.code == 3
    assert why(ran) == {"fresh": ("PASS", ["NEW: the base does not have this agent"])}


def test_d5_a_ledger_that_a_change_takes_from_one_of_several_agents_is_missed(
    tmp_path: Path,
) -> None:
    """D5: `--allow-empty` or not."""
    base = checkout(tmp_path / "base", "  a: {path: ., ledger: a.jsonl}\n  b: {path: .}\n")
    head = checkout(tmp_path / "head", "  a: {path: .}\n  fresh: {path: ., ledger: f.jsonl}\n")
    ran = gated(head, base, "--format", "json", "--allow-empty")
    assert ran.code == 3
    assert why(ran)["a"] == ("INCONCLUSIVE", ["its ledger vanished"])


def test_one_folder_is_not_the_base_or_the_candidate_of_several_agents(tmp_path: Path) -> None:
    agents = "  a: {path: ., ledger: a.jsonl}\n  b: {path: ., ledger: b.jsonl}\n"
    head = checkout(tmp_path / "head", agents) / "backstop.yaml"
    (tmp_path / "alone").mkdir()
    for option in ("--candidate", "--base"):
        said = refused("config-agent", "gate", "--config", head, option, tmp_path / "alone")
        assert "--agent" in said


def test_d1_a_pull_request_does_not_choose_what_holds_it_back(tmp_path: Path) -> None:
    """D1: sandbox and control are the base's, whose folder its own configuration names."""
    studio = Studio(folder=tmp_path)
    agent = studio.version("base", AGENT)
    ledger = studio.ledger(
        agent,
        steps=["go"],
        models={"desk": [called(("pay", {"vendor": "x"})), said("paid")]},
        declared={"pay": Declaration(tool="pay", identity=("vendor",))},
    )
    line = "  desk: {path: desk, ledger: ../desk.jsonl, tools: {pay: {identity: [vendor]}}}\n"
    (tmp_path / "desk.jsonl").write_bytes(b"".join(seal_lines(ledger.header, list(ledger.events))))
    outside = tmp_path / "outside"
    writes = ("    pass\n", f"    pathlib.Path({str(outside)!r}).touch()\n")
    studio.version("head", AGENT, writes)
    base = checkout(tmp_path / "base", line, more="sandbox: {kind: process}\n")
    loose = "sandbox: {kind: none}\ngate: {control: none}\n"
    ran = gated(checkout(tmp_path / "head", line, more=loose), base, "--format", "json")
    assert not outside.exists()
    assert ran.code == 3
    (told,) = why(ran).values()
    assert any("barred" in reason or "PermissionError" in reason for reason in told[1]), told
