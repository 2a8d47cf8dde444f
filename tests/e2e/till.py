"""A till and its guard: the real runner, a scripted model, and what really went out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from backstop.core.events import Event, Header
from backstop.core.ledgerfile import Ledger, read, verify
from backstop.core.sealing import seal_lines
from backstop.wiring.plugin import Plugin
from backstop.wiring.stores import find_store

CONFIG = """\
version: 1
agents:
  till:
    path: agent
    store: sqlite:///{store}
    tools:
      pay: {{identity: [order]}}
      look: {{effect: false}}
"""


class Scripted(BaseLlm):
    """Answers with its lines, one a request."""

    lines: list[Any]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        line = self.lines.pop(0)
        for one in line if isinstance(line, tuple) else (line,):
            if isinstance(one, LlmResponse):
                yield one
            else:
                yield LlmResponse(content=types.Content(role="model", parts=one))


def says(text: str) -> list[types.Part]:
    return [types.Part(text=text)]


def calls(*asked: tuple[str, dict[str, Any]]) -> list[types.Part]:
    return [
        types.Part(function_call=types.FunctionCall(name=name, args=args)) for name, args in asked
    ]


def words(text: str) -> types.Content:
    return types.Content(role="user", parts=says(text))


@dataclass(kw_only=True)
class Till:
    """One agent, its configuration in a folder of its own, its sessions, and its store.

    `sent` is what really went out.
    """

    folder: Path
    sent: list[Any] = field(default_factory=list)
    sessions: InMemorySessionService = field(default_factory=InMemorySessionService)
    config: str = CONFIG

    def __post_init__(self) -> None:
        (self.folder / "agent").mkdir(exist_ok=True)
        (self.folder / "agent" / "agent.py").write_text("root_agent = None\n", encoding="utf-8")
        said = self.config.format(store=self.folder / "guard.db")
        (self.folder / "backstop.yaml").write_text(said, encoding="utf-8")

    def pay(self, order: str, amount: int) -> dict[str, Any]:
        """Pays."""
        self.sent.append((order, amount))
        return {"paid": order, "amount": amount}

    def look(self, order: str) -> dict[str, Any]:
        """Looks."""
        return {"order": order}

    def plugin(self, **said: Any) -> Plugin:
        return Plugin(config=self.folder / "backstop.yaml", **said)

    def agent(self, *lines: Any, **more: Any) -> LlmAgent:
        tools = more.pop("tools", [self.pay, self.look])
        return LlmAgent(
            name="till", model=Scripted(model="gemini-x", lines=list(lines)), tools=tools, **more
        )

    def runner(
        self, root: Any, *, plugins: Sequence[BasePlugin] | None = None, **app: Any
    ) -> Runner:
        guard: list[BasePlugin] = [self.plugin()] if plugins is None else list(plugins)
        whole = App(name="till", root_agent=root, plugins=guard, **app)
        return Runner(app=whole, session_service=self.sessions)

    async def session(self, name: str = "c1", **state: Any) -> None:
        await self.sessions.create_session(
            app_name="till", user_id="u", session_id=name, state=state
        )

    async def say(
        self,
        runner: Runner,
        message: str | types.Content | None,
        *,
        session: str = "c1",
        **more: Any,
    ) -> list[Any]:
        if isinstance(message, str):
            message = words(message)
        return [
            event
            async for event in runner.run_async(
                user_id="u", session_id=session, new_message=message, **more
            )
        ]

    def chat(self, root: Any, *messages: str, **app: Any) -> list[Any]:
        """Say these in one new session; what came of it."""

        async def go() -> list[Any]:
            await self.session()
            runner = self.runner(root, **app)
            return [event for one in messages for event in await self.say(runner, one)]

        return asyncio.run(go())

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'guard.db'}"

    def events(self) -> list[Event]:
        return list(find_store(self.url, agent="till").read())

    def rows(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events() if isinstance(event, kind)]

    def header(self) -> Header:
        return find_store(self.url, agent="till").header

    def verified(self) -> Ledger:
        """The ledger that the store holds, sealed and checked strictly."""
        sealed = b"".join(seal_lines(self.header(), self.events()))
        verify((sealed,), name="till.jsonl")
        return read(sealed, name="till.jsonl")


def told(events: Sequence[Any], name: str) -> list[Any]:
    """What the agent was told of its calls of a tool."""
    return [
        response.response
        for event in events
        for response in event.get_function_responses()
        if response.name == name
    ]


PAY = calls(("pay", {"order": "7", "amount": 10}))


def nested(till: Till, **tool: bool) -> LlmAgent:
    """An agent whose tool is an agent that pays; `tool` is how it stands in there."""
    inner = LlmAgent(
        name="inner",
        description="Pays.",
        model=Scripted(model="m", lines=[PAY, says("paid")]),
        tools=[till.pay],
    )
    asked = calls(("inner", {"request": "pay"}))
    return till.agent(asked, says("done"), tools=[AgentTool(agent=inner, **tool)])


def asked_of(events: list[Any]) -> list[str]:
    """The ids under which a person is asked to confirm calls."""
    return [
        call.id
        for event in events
        for call in event.get_function_calls()
        if call.name == "adk_request_confirmation"
    ]


def answer(call: str, response: dict[str, Any], name: str = "adk_request_confirmation") -> Any:
    told_so = types.FunctionResponse(id=call, name=name, response=response)
    return types.Content(role="user", parts=[types.Part(function_response=told_so)])


def yes(call: str) -> Any:
    return answer(call, {"confirmed": True})


def no(call: str) -> Any:
    return answer(call, {"confirmed": False})
