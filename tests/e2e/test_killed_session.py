"""A session that is killed in the middle of an effect, goes on, is decided, and is judged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import ROOT, backstop

CONFIG = """\
version: 1
agents:
  shop:
    path: v1/shop
    store: sqlite:///guard.db
    ledger: shop.jsonl
    guarded: true
sandbox: {kind: process}
"""

AGENT = '''\
"""Orders, then pays: a workflow whose nodes call effects. It attaches no guard."""

import os

import backstop
from google.adk.workflow import FunctionNode, Workflow


@backstop.effect(identity=["item"])
def order(item: str) -> dict:
    if os.environ.get("DIES"):
        os._exit(9)
    return {"ordered": item}


@backstop.effect(identity=["invoice"])
def pay(invoice: str) -> dict:
    return {"paid": invoice}


def ordering(node_input: str) -> dict:
    return order("chair")


def paying(node_input: dict) -> dict:
    return pay("INV-7")


first = FunctionNode(func=ordering, name="ordering")
root_agent = Workflow(
    name="shop", edges=[("START", first), (first, FunctionNode(func=paying, name="paying"))]
)
'''

SAYS = """\
import asyncio, sys
sys.path.insert(0, "v1")
import backstop
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types
from shop.agent import root_agent

async def main():
    sessions = SqliteSessionService("sessions.db")
    app = App(name="shop", root_agent=root_agent, plugins=[backstop.Plugin()])
    named = {"app_name": "shop", "user_id": "u", "session_id": "c1"}
    if await sessions.get_session(**named) is None:
        await sessions.create_session(**named)
    message = types.UserContent(parts=[types.Part(text="go")])
    async for _ in Runner(app=app, session_service=sessions).run_async(
        user_id="u", session_id="c1", new_message=message
    ):
        pass

asyncio.run(main())
"""


def says(folder: Path, **environment: str) -> int:
    """A message to the session, in a process of its own; its exit code."""
    told = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    ran = subprocess.run(  # our own interpreter and text
        [sys.executable, "-W", "ignore", "-c", SAYS], cwd=folder, env=told, check=False
    )
    return ran.returncode


@pytest.mark.parametrize("word", [("--committed", '{"ordered": "chair"}'), ("--failed",)])
def test_the_version_that_was_killed_passes_and_one_that_relabels_is_blocked(
    tmp_path: Path, word: tuple[str, ...]
) -> None:
    """The guard is attached from outside; the killed step is made up for by the next message."""
    (tmp_path / "v1/shop").mkdir(parents=True)
    (tmp_path / "v1/shop/agent.py").write_text(AGENT, encoding="utf-8")
    config = tmp_path / "backstop.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    assert says(tmp_path, DIES="1") == 9
    assert says(tmp_path) == 0
    listed = backstop("effects", "list", "--format", "json", "--config", config)
    (doubt,) = json.loads(listed.out)["effects"]
    resolved = backstop("effects", "resolve", doubt["key"], *word, "--config", config)
    assert resolved.code == 0, resolved
    assert says(tmp_path) == 0
    url = f"sqlite:///{tmp_path}/guard.db"
    pulled = backstop("ledger", "pull", url, "--agent", "shop", "--out", tmp_path / "shop.jsonl")
    assert pulled.code == 0, pulled

    gate = ("gate", "--config", config, "--base", tmp_path / "v1/shop")
    same = backstop(*gate)
    assert same.code == 0, same
    shutil.copytree(tmp_path / "v1", tmp_path / "v2")
    relabels = AGENT.replace('pay("INV-7")', 'pay("inv-7")')
    (tmp_path / "v2/shop/agent.py").write_text(relabels, encoding="utf-8")
    other = backstop(*gate, "--candidate", tmp_path / "v2/shop")
    assert other.code == 1, other
    assert "DUPLICATE (relabelled) pay" in other.out
