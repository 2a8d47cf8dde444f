"""Runs scripted agents behind a recorder, over books that outlive it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types
from pydantic import PrivateAttr

from backstop.mesh.books import Books
from backstop.mesh.recorder import MeshPlugin
from tests.e2e.oracle import books


class Script(BaseLlm):
    """Says what it is told to, in turn; a name with arguments is a call."""

    model: str = "script"
    _says: list[Any] = PrivateAttr()

    def __init__(self, says: Sequence[Any]) -> None:
        super().__init__(model="script")
        self._says = list(says)

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,
    ) -> AsyncGenerator[LlmResponse, None]:
        """The next of them."""
        said = self._says.pop(0)
        part = types.Part(text=said) if isinstance(said, str) else _call(*said)
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=100, candidates_token_count=7
        )
        content = types.Content(role="model", parts=[part])
        yield LlmResponse(content=content, usage_metadata=usage)


def _call(name: str, args: Mapping[str, Any]) -> types.Part:
    return types.Part.from_function_call(name=name, args=dict(args))


def desk(says: Sequence[Any], tools: Sequence[Callable[..., Any]] = (), **named: Any) -> LlmAgent:
    """An agent called `desk` that says this."""
    return LlmAgent(name="desk", model=Script(says), tools=list(tools), **named)


@dataclass(kw_only=True)
class House:
    """A session that outlives recorders: each message may be met by a new one."""

    kept: Books = field(default_factory=books)
    state: dict[str, Any] = field(default_factory=dict)
    sessions: InMemorySessionService = field(default_factory=InMemorySessionService)

    def say(self, agent: Any, plugin: MeshPlugin | None = None, text: str = "go") -> MeshPlugin:
        """One message to the agent; what recorded it."""
        recorder = MeshPlugin(self.kept) if plugin is None else plugin
        asyncio.run(self._say(agent, recorder, text))
        return recorder

    async def _say(self, agent: Any, plugin: MeshPlugin, text: str) -> None:
        home: Any = {"app_name": "desk", "user_id": "u", "session_id": "r"}
        if await self.sessions.get_session(**home) is None:
            await self.sessions.create_session(**home, state=self.state)
        app = App(name="desk", root_agent=agent, plugins=[plugin])
        runner = Runner(app=app, session_service=self.sessions)
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(user_id="u", session_id="r", new_message=message):
            pass
