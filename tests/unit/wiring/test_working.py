"""A worker put together from the configuration."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstop.cli.working import worker as command
from backstop.config import Agent, load
from backstop.core.events import CursorAdvanced, EffectCommitted
from backstop.errors import ConfigError, UsageError
from backstop.ports import Delivery, Done, Handled
from backstop.wiring.station import Settings
from backstop.wiring.stores import find_store
from backstop.wiring.working import sessions_beside, work, worker_of

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")

CODE = '''
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from backstop import Plugin

class Scripted(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        last = request.contents[-1].parts[0]
        part = types.Part(text="done")
        if last.text:
            call = types.FunctionCall(name="send_mail", args={"to": last.text})
            part = types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

MAILS = []

def send_mail(to: str) -> dict:
    """Sends a mail."""
    MAILS.append(to)
    return {"status": "sent"}

clerk = LlmAgent(name="clerk", model=Scripted(model="scripted"), tools=[send_mail])
app = App(name="clerk", root_agent=clerk, plugins=[Plugin()])
'''
CONFIG = """
version: 1
agents:
  clerk:
    path: clerk
    tools:
      send_mail: {identity: [to]}
  nowhere:
    tools: {}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "clerk").mkdir()
    (tmp_path / "clerk" / "agent.py").write_text(CODE)
    (tmp_path / "backstop.yaml").write_text(CONFIG)
    before, path = set(sys.modules), list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "clerk":
            del sys.modules[name]


def agent(folder: Path, name: str = "clerk") -> Agent:
    return load(folder / "backstop.yaml").agent(name)


def test_the_worker_of_a_configured_agent_is_its_only_guard(folder: Path) -> None:
    url = f"sqlite:///{folder / 's.db'}"
    worker = worker_of(agent(folder), Settings(store=url))
    about = {"run": "r1", "cursor": "0", "user": "u", "state": "{}"}
    answer = asyncio.run(worker.handle(Delivery(id="m", attributes=about, data=b"x@y")))
    assert answer == Done(reason="the step is done")
    events = list(find_store(url, agent="clerk").read("r1"))
    assert sum(isinstance(event, EffectCommitted) for event in events) == 1
    assert [event.session for event in events if isinstance(event, CursorAdvanced)] == ["r1.s0.1"]
    assert sys.modules["clerk.agent"].MAILS == ["x@y"]
    assert (folder / "s.db.sessions").is_file()


def test_an_agent_without_a_folder_cannot_be_run(folder: Path) -> None:
    with pytest.raises(ConfigError, match="has no `path`"):
        worker_of(agent(folder, "nowhere"), Settings(store="memory:"))


def test_a_store_that_one_process_sees_is_none_for_workers() -> None:
    with pytest.raises(ConfigError, match="a store that other processes see"):
        sessions_beside("memory:")


@pytest.mark.parametrize("name", ["s", "projects/p/topics/t", "projects//subscriptions/s"])
def test_only_the_full_name_of_a_subscription_is_taken(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match="write projects/PROJECT/subscriptions/NAME"):
        asyncio.run(work(agent(folder), Settings(), subscription=name, at_once=1, report=_unheard))


def _unheard(delivery: Delivery, answer: Handled) -> None:
    raise AssertionError(delivery, answer)


def test_no_message_at_a_time_is_no_work(folder: Path) -> None:
    with pytest.raises(UsageError, match="--at-once: 0"):
        command("s", config=folder / "backstop.yaml", agent="clerk", store=None, at_once=0)
