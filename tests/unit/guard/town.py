"""A town for worker tests: a store, sessions, a world behind the tools, workers that die."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.events.event import Event as AdkEvent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from backstop.adapters.memory import SEEN, MemoryStore
from backstop.core.declaration import Declaration, Namespace
from backstop.core.effectgate import Precondition
from backstop.core.events import (
    CursorAdvanced,
    EffectClaimed,
    EffectResolved,
    Event,
)
from backstop.guard.claims.safety import NO_SAFETY, Safety
from backstop.guard.journal import Journal
from backstop.guard.plugin.recorder import RecordingPlugin
from backstop.guard.workers.attendance import Attendance
from backstop.guard.workers.worker import Worker
from backstop.ports import Answer, Claim, Delivery, Handled, Settlement

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


class Noon:
    """It is noon, until somebody says that it is `late`."""

    late = timedelta()

    def now(self) -> datetime:
        return datetime(2026, 3, 2, 12, 0, tzinfo=UTC) + self.late


class Scripted(BaseLlm):
    """Makes the calls that the last message lists, one a request, then stops.

    What it does depends on the conversation alone, as a real model's answer does.
    """

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        calls, done = _wanted(llm_request.contents)
        part = types.Part(text=f"seen {len(llm_request.contents)}")
        if done < len(calls):
            name, args = calls[done]
            part = types.Part(function_call=types.FunctionCall(name=name, args=args))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def _wanted(contents: list[types.Content]) -> tuple[list[Any], int]:
    calls, done = [], 0
    for content in contents:
        for part in content.parts or []:
            if content.role == "user" and part.text:
                calls, done = json.loads(part.text), 0
            elif part.function_response is not None:
                done += 1
    return calls, done


class Died(BaseException):
    """The worker's process is gone, as by kill -9."""


class Raced(MemoryStore):
    """Lets others get in between."""

    before_claim: Callable[[EffectClaimed], None] | None = None
    before_append: Callable[[Event], None] | None = None
    unreachable = False

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        if self.unreachable:
            raise Died
        super().settle(settlement, claim=claim)

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        if (hook := self.before_claim) is not None:
            self.before_claim = None
            hook(intent)
        return super().claim(intent, precondition)

    def append(self, event: Event) -> bool:
        if self.before_append is not None:
            self.before_append(event)
        return super().append(event)


@dataclass
class Town:
    """A store, a session service, the world behind the tools, and workers that die."""

    sessions: BaseSessionService = field(default_factory=InMemorySessionService)
    mails: list[str] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)
    out_of_sight: set[str] = field(default_factory=set)
    safety: Safety = NO_SAFETY
    clock: Noon = field(default_factory=Noon)
    faults: list[Exception] = field(default_factory=list)
    on_mail: Callable[[str], Any] | None = None

    def __post_init__(self) -> None:
        self.store = Raced(clock=self.clock, is_alive=self._is_alive)

    def _is_alive(self, owner: str) -> bool | None:
        name = owner.split("/", maxsplit=1)[0]
        return None if name in self.out_of_sight else name not in self.dead

    async def send_mail(self, to: str, tool_context: ToolContext) -> dict[str, str]:
        """Send a mail."""
        if self.on_mail is not None:
            await self.on_mail(to)
        self.mails.append(to)
        tool_context.state["mails"] = tool_context.state.get("mails", 0) + 1
        if self.faults:
            raise self.faults.pop()
        return {"sent": to}

    def worker(self, name: str, *, version: str = "v1") -> Worker:
        agent = LlmAgent(
            name="desk", model=Scripted(model="scripted"), tools=[FunctionTool(self.send_mail)]
        )
        return Worker(
            app=App(name="desk", root_agent=agent),
            store=self.store,
            journal=lambda store: Journal(
                store=store,
                namespace=Namespace(agent="desk"),
                declarations={"send_mail": Declaration(tool="send_mail", identity=("to",))},
                version=version,
                owner=name,
            ),
            guard=lambda journal: RecordingPlugin(journal, unsaid=self.safety),
            sessions=self.sessions,
            attendance=Attendance(
                process=name, liveness=lambda other: SEEN[self._is_alive(other)], clock=self.clock
            ),
        )

    def cursor(self, run: str = "r1") -> int:
        return max((e.cursor for e in self.events(CursorAdvanced, run)), default=0)

    def events(self, kind: type[Any], run: str = "r1") -> list[Any]:
        return [event for event in self.store.read(run) if isinstance(event, kind)]

    def dies_at(self, kind: type[Any], worker: str) -> None:
        """The worker is gone at its next event of this kind, before that is written."""

        def die(event: Event) -> None:
            if isinstance(event, kind):
                self.store.before_append = None
                self.dead.add(worker)
                raise Died

        self.store.before_append = die

    def resolve(self, to: str, fence: int) -> None:
        claimed = self.events(EffectClaimed)[-1]
        self.store.settle(
            EffectResolved(
                run=claimed.run, at="", key=claimed.key, to=to, by="person:me", fence=fence
            )
        )


def parts_of(event: AdkEvent) -> list[types.Part]:
    return (event.content.parts if event.content else None) or []


def tick(*mails: str, cursor: int | None = 0, id: str = "m1", **said: str) -> Delivery:  # noqa: A002 - a message's
    attributes = {"run": "r1", "user": "u", "state": "{}", **said}
    if cursor is not None:
        attributes["cursor"] = str(cursor)
    calls = [["send_mail", {"to": to}] for to in mails]
    return Delivery(id=id, attributes=attributes, data=json.dumps(calls).encode())


def handle(worker: Worker, delivery: Delivery) -> Handled:
    return asyncio.run(worker.handle(delivery))
