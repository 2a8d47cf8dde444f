"""From production to the gate: what the plugin wrote is pulled, replayed and judged."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from backstop.wiring.plugin import Plugin
from tests.e2e.command import ROOT, backstop
from tests.e2e.till import words

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")

CONFIG = """\
version: 1
agents:
  till:
    path: v1
    store: sqlite:///{store}
    ledger: till.jsonl
    guarded: true
    tools:
      pay: {{identity: [order]}}
      look: {{effect: false}}
sandbox: {{kind: process}}
"""
MESSAGES = ("pay acme 10", "look acme", "pay acme 10", "pay bolt 1")
RELABELS = """

def upper(tool, args, tool_context):
    args["order"] = args["order"].upper()


root_agent.before_tool_callback = upper
"""


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    """The file in which the agent's tools say what they did."""
    os.environ["TILL_OUT"] = str(tmp_path / "out")
    yield tmp_path / "out"
    del os.environ["TILL_OUT"]


@pytest.fixture
def produced(tmp_path: Path, out: Path) -> Path:
    """Two sessions under the plugin, and the ledger that was pulled from its store."""
    shutil.copytree(ROOT / "tests/agents/till", tmp_path / "v1")
    store = tmp_path / "guard.db"
    (tmp_path / "backstop.yaml").write_text(CONFIG.format(store=store), encoding="utf-8")
    asyncio.run(_live(tmp_path))
    assert out.read_text(encoding="utf-8").count("pay") == 4
    ran = backstop(
        *("ledger", "pull", f"sqlite:///{store}", "--agent", "till"),
        *("--out", tmp_path / "till.jsonl"),
    )
    assert ran.code == 0, ran
    return tmp_path


async def _live(folder: Path) -> None:
    spec = importlib.util.spec_from_file_location("till_of_the_gate", folder / "v1/agent.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sessions = InMemorySessionService()
    guard = Plugin(config=folder / "backstop.yaml")
    app = App(name="till", root_agent=module.root_agent, plugins=[guard])
    runner = Runner(app=app, session_service=sessions)
    for session in ("c1", "c2"):
        await sessions.create_session(app_name="till", user_id="u", session_id=session)
        for message in MESSAGES:
            async for _ in runner.run_async(
                user_id="u", session_id=session, new_message=words(message)
            ):
                pass


def test_the_version_that_ran_passes_without_drift_and_one_that_relabels_is_blocked(
    produced: Path,
) -> None:
    gate = ("gate", "--config", produced / "backstop.yaml", "--agent", "till")
    same = backstop(*gate)
    assert (same.code, same.err) == (0, ""), same
    assert "compared 2 of 2 runs" in same.out
    assert "request drift: none" in same.out
    assert "2 repeats absorbed by the guard" in same.out
    shutil.copytree(produced / "v1", produced / "v2")
    agent = produced / "v2/agent.py"
    agent.write_text(agent.read_text(encoding="utf-8") + RELABELS, encoding="utf-8")
    other = backstop(*gate, "--candidate", produced / "v2")
    assert other.code == 1, other
    assert other.out.count("relabelled") >= 1
