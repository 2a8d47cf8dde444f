"""Workers on the real Pub/Sub emulator, processes and all, and on the specimen's own agent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from backstop.adapters.content import version_of
from backstop.adapters.memory import MemoryStore
from backstop.adapters.owners import liveness_of, this_process
from backstop.adapters.pubsub import Inbox, Outbox, Place, prepare
from backstop.clock import SystemClock
from backstop.core.declaration import Namespace
from backstop.core.events import (
    CursorAdvanced,
    EffectCommitted,
    StepStarted,
    ToolRead,
)
from backstop.core.ledgerverify import verify
from backstop.core.sealing import seal_lines
from backstop.guard.journal import Journal
from backstop.guard.plugin.recorder import RecordingPlugin
from backstop.guard.workers.attendance import Attendance
from backstop.guard.workers.worker import Worker
from backstop.ports import Delivery, Done, Handled
from examples.vendor_onboarding.record import AGENT, HERE, declared, header, staged
from examples.vendor_onboarding.v1 import agent
from tests.conftest import ROOT
from tests.emulators import fresh_name, pubsub_host  # noqa: F401 - a fixture
from tests.unit.guard.town import Town, tick

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")

PATIENCE_S = 30.0


class Losing(Inbox):
    """Gives each message back while it is still being handled, as a lease that ran out does."""

    async def _keep(self, client: Any, ticket: str) -> None:
        await self._extend(client, ticket, 0)


@pytest.mark.emulator
def test_s06_two_holders_of_one_message_do_one_step(pubsub_host: str) -> None:  # noqa: F811 - pytest's way
    """S06: the message comes again, under its own id, while the first worker is at it."""
    place = Place(project=fresh_name("p"), emulator=pubsub_host)
    prepare(place, topic="ticks", subscription="workers", first_pause_s=0.1, deadline_s=10)
    town, seen = Town(), list[Delivery]()
    worker = town.worker("a")
    asked: list[Handled] = []

    async def long_enough_for_the_other_to_come(to: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while len(seen) < 2 and time.monotonic() < until:  # noqa: ASYNC110 - on others
            await asyncio.sleep(0.02)

    town.on_mail = long_enough_for_the_other_to_come

    async def handled(delivery: Delivery) -> Handled:
        seen.append(delivery)
        return await worker.handle(delivery)

    async def served() -> None:
        inbox = Losing(place, "workers", at_once=2)
        serving = asyncio.create_task(
            inbox.serve(handled, report=lambda _, answer: asked.append(answer))
        )
        until = time.monotonic() + PATIENCE_S
        while not any(isinstance(one, Done) for one in asked):
            assert time.monotonic() < until
            await asyncio.sleep(0.05)
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving

    message = tick("x@y")
    outbox = Outbox(place, "ticks")
    outbox.publish(message.data, message.attributes)
    outbox.close()
    asyncio.run(served())
    assert len({delivery.id for delivery in seen}) == 1
    assert len(seen) >= 2
    assert (town.mails, town.cursor()) == (["x@y"], 1)


def demo(*arguments: str, folder: Path) -> tuple[int, str]:
    """The small demonstration, its exit code and what it printed; no process may be left."""
    mark = fresh_name("demo")
    played = subprocess.run(
        [sys.executable, "-m", "examples.vendor_onboarding.demo", "--small",
         "--out", str(folder / "ledger.jsonl"), *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S * 6, check=False,
        env={**os.environ, "BACKSTOP_TEST_MARK": mark},
    )  # fmt: skip
    assert played.stderr == ""  # in a pipe it is quiet
    assert all(len(line) <= 80 for line in played.stdout.splitlines())
    left = [
        process.parent.name
        for process in Path("/proc").glob("[0-9]*/environ")
        if _holds(process, mark)
    ]
    assert left == []
    return played.returncode, played.stdout


def _holds(environment: Path, mark: str) -> bool:
    with contextlib.suppress(OSError):
        return mark.encode() in environment.read_bytes()
    return False


@pytest.mark.emulator
def test_the_demonstration_kills_workers_and_no_mail_goes_twice(
    pubsub_host: str,  # noqa: F811 - says whether there are emulators
    tmp_path: Path,
) -> None:
    code, said = demo(folder=tmp_path)
    assert code == 0, said
    assert said.count("kill -9") == 2
    assert said.count("in doubt") == 2
    assert "firestore://" in said
    assert "mails sent 2, twice 0" in said
    assert "each cursor equals its effects" in said
    with (tmp_path / "ledger.jsonl").open("rb") as ledger:
        assert verify(ledger, name="ledger", expect_agent=AGENT).runs == 2
    assert "PASS" in judged(tmp_path / "ledger.jsonl")


def judged(ledger: Path) -> str:
    """What the gate says of the version that wrote this ledger: it must find nothing."""
    config = (ROOT / "backstop.yaml").read_text(encoding="utf-8")
    config = config.replace(f"ledgers/{AGENT}.jsonl", str(ledger))
    (ledger.parent / "backstop.yaml").write_text(config, encoding="utf-8")
    gate = subprocess.run(
        [sys.executable, "-m", "backstop", "gate", "--config", ledger.parent / "backstop.yaml",
         "--agent", AGENT, "--candidate", HERE / "v1", "--sandbox", "process"],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S * 4, check=False,
    )  # fmt: skip
    assert gate.returncode == 0, gate.stdout + gate.stderr
    return gate.stdout


@pytest.mark.emulator
def test_the_demonstration_without_a_guard_is_red(
    pubsub_host: str,  # noqa: F811 - says whether there are emulators
    tmp_path: Path,
) -> None:
    """The control: the same play would not be green by itself."""
    code, said = demo("--unguarded", "--store", f"sqlite:///{tmp_path}/s.db", folder=tmp_path)
    assert code == 1, said
    assert "Welcome' happened" in " ".join(said.split())


class Desk:
    """The specimen's agent behind a worker, with nothing but a store around it."""

    def __init__(self) -> None:
        self.done: list[tuple[str, dict[str, Any]]] = []
        declarations, self.version = declared(), version_of(HERE / "v1")
        self.header = header(declarations, self.version)
        self.store = MemoryStore(clock=SystemClock(), header=self.header)
        self.sessions = InMemorySessionService()

        def guard(journal: Journal) -> BasePlugin:
            return RecordingPlugin(journal)

        self.worker = Worker(
            app=agent.app,
            store=self.store,
            journal=lambda store: Journal(
                store=store,
                namespace=Namespace(agent=AGENT),
                declarations=declarations,
                version=self.version,
                owner="worker-1",
            ),
            guard=guard,
            sessions=self.sessions,
            attendance=Attendance(
                process=this_process(), liveness=liveness_of, clock=SystemClock()
            ),
        )

    async def service(self, tool: str, arguments: Any, answer: Any) -> Any:
        self.done.append((tool, dict(arguments)))
        return answer()

    def tick(self, cursor: int, *, message: types.Content | None = None) -> Handled:
        state = json.dumps({"vendor": "acme", "tick": 0})
        attributes = {"run": "acme", "cursor": str(cursor), "user": "u", "state": state}
        data = b"agent.tick"
        if message is not None:
            attributes |= {"content_type": "application/json", "trigger": "approval"}
            data = message.model_dump_json(exclude_none=True).encode()
        delivery = Delivery(id=f"m{cursor}", attributes=attributes, data=data)
        with staged(self.service):
            return asyncio.run(self.worker.handle(delivery))

    def pending(self) -> types.FunctionCall:
        """The call that the last step waits for."""
        name = list(self.store.read("acme"))[-1]
        assert isinstance(name, CursorAdvanced)
        link = asyncio.run(
            self.sessions.get_session(app_name=agent.app.name, user_id="u", session_id=name.session)
        )
        assert link is not None
        return next(
            call
            for event in link.events
            for call in event.get_function_calls()
            if call.id in (event.long_running_tool_ids or ())
        )


def test_a_step_that_waits_for_a_person_goes_on_days_later_from_the_chain_of_sessions() -> None:
    desk = Desk()
    for cursor in range(6):  # in the sixth, approval is asked for
        assert isinstance(desk.tick(cursor), Done)
    call = desk.pending()
    answer = types.FunctionResponse(
        id=call.id, name=call.name, response={"status": "approved", "by": "Renée Dubois"}
    )
    approved = types.Content(role="user", parts=[types.Part(function_response=answer)])
    assert isinstance(desk.tick(6, message=approved), Done)
    assert isinstance(desk.tick(7), Done)
    orders = [arguments["po_ref"] for tool, arguments in desk.done if "order" in tool]
    assert orders == ["PO-acme-6"]
    steps = [event for event in desk.store.read("acme") if isinstance(event, StepStarted)]
    assert [json.loads(bytes(step.state))["tick"] for step in steps] == [0, 1, 2, 3, 4, 5, 5, 6]
    verify(seal_lines(desk.header, list(desk.store.read())), name="ledger", expect_agent=AGENT)


def test_what_a_worker_writes_of_the_story_is_what_the_specimen_holds() -> None:
    desk = Desk()
    for cursor in range(5):
        assert isinstance(desk.tick(cursor), Done)
    kinds = [type(event) for event in desk.store.read("acme")]
    assert kinds.count(EffectCommitted) == 2
    assert kinds.count(ToolRead) == 10
    assert [tool for tool, _ in desk.done if tool != "lookup_vendor"] == [
        "send_mail",
        "schedule_reminder",
    ]


AGENT_CODE = '''
import json, os
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

class Scripted(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        last = request.contents[-1].parts[0]
        part = types.Part(text="done")
        if last.text:
            call = types.FunctionCall(name="send_mail", args={"to": last.text})
            part = types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))

def send_mail(to: str) -> dict:
    """Sends a mail."""
    with open(os.environ["MAILS"], "a") as mails:
        mails.write(to + "\\n")
    return {"status": "sent"}

root_agent = LlmAgent(name="clerk", model=Scripted(model="scripted"), tools=[send_mail])
'''
CONFIG = """
version: 1
agents:
  clerk:
    path: clerk
    store: sqlite:///{store}
    tools:
      send_mail: {{identity: [to]}}
"""


@pytest.mark.emulator
def test_the_command_works_an_agent_off_without_a_line_of_code(
    pubsub_host: str,  # noqa: F811 - pytest's way
    tmp_path: Path,
) -> None:
    place = Place(project=fresh_name("p"), emulator=pubsub_host)
    prepare(place, topic="ticks", subscription="workers", first_pause_s=0.1, deadline_s=10)
    (tmp_path / "clerk").mkdir()
    (tmp_path / "clerk" / "__init__.py").write_text("from . import agent\n")
    (tmp_path / "clerk" / "agent.py").write_text(AGENT_CODE)
    (tmp_path / "backstop.yaml").write_text(CONFIG.format(store=tmp_path / "s.db"))
    mails = tmp_path / "mails"
    outbox = Outbox(place, "ticks")
    for cursor, to in [(0, b"a@x"), (0, b"a@x"), (1, b"b@x")]:
        about = {"run": "r1", "cursor": str(cursor), "user": "u", "state": "{}"}
        outbox.publish(to, about)
    outbox.close()
    subscription = f"projects/{place.project}/subscriptions/workers"
    working = subprocess.Popen(
        [sys.executable, "-m", "backstop", "worker", subscription],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PUBSUB_EMULATOR_HOST": pubsub_host, "MAILS": str(mails)},
    )  # fmt: skip
    assert working.stdout is not None
    impatient = threading.Timer(PATIENCE_S * 3, working.kill)
    impatient.start()
    told: list[str] = []
    while sum(line.startswith("done") for line in told) < 3:
        line = working.stdout.readline()
        assert line, told
        told.append(line)
    impatient.cancel()
    working.terminate()
    assert working.wait(timeout=PATIENCE_S) == 0
    working.stdout.close()
    assert mails.read_text().splitlines() == ["a@x", "b@x"]
    assert sorted(line for line in told if line.startswith("done")) == [
        "done  r1 0: the step is done\n",
        "done  r1 0: the step was done before\n",
        "done  r1 1: the step is done\n",
    ]
