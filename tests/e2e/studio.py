"""Records real agents behind the guard, with scripted models, so that versions can be replayed."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.apps.app import ResumabilityConfig
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from backstop.adapters.content import version_of
from backstop.adapters.memory import MemoryStore
from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import FORMAT, Header
from backstop.core.ledgerfile import Ledger, read
from backstop.core.sealing import seal_lines
from backstop.guard import effect
from backstop.guard.claims.desk import NoEffectOn
from backstop.guard.journal import Attempt, Journal
from backstop.guard.plugin.recorder import RecordingPlugin

Answers: TypeAlias = Mapping[str, Sequence[object]]
"""By agent, what its model answers in turn: parts, or several responses of one request."""

Pending: TypeAlias = dict[str, tuple[str, dict[str, Any]]]
"""Calls that wait for an answer from outside: name and arguments, by call id."""

Trigger: TypeAlias = str | Callable[[Pending], types.Content]

_MODULES: Final = count()


class Ticking:
    """A second passes whenever somebody looks."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


def called(*asked: tuple[str, dict[str, Any]]) -> list[types.Part]:
    """A model's answer that calls tools."""
    return [types.Part(function_call=types.FunctionCall(name=n, args=a)) for n, a in asked]


def said(text: str) -> list[types.Part]:
    """A model's answer in words."""
    return [types.Part(text=text)]


def answering(name: str, response: dict[str, Any]) -> Callable[[Pending], types.Content]:
    """A message that answers the one pending call of tool `name`."""

    def answer(pending: Pending) -> types.Content:
        (call,) = [known for known, (tool, _) in pending.items() if tool == name]
        told = types.FunctionResponse(id=call, name=name, response=response)
        return types.Content(role="user", parts=[types.Part(function_response=told)])

    return answer


@dataclass(frozen=True, kw_only=True)
class Studio:
    """Where versions of agents live and are recorded; `name` is whose ledgers these are."""

    folder: Path
    name: str = "desk"

    def version(
        self, name: str, source: str, *changes: tuple[str, str], package: str = "desk"
    ) -> Path:
        """A version of an agent: `source` with texts replaced, each of which must be there."""
        for old, new in changes:
            assert old in source, old
            source = source.replace(old, new)
        agent = self.folder / name / package
        agent.mkdir(parents=True)
        (agent / "agent.py").write_text(source, encoding="utf-8")
        return agent

    def ledger(
        self,
        agent: Path,
        *,
        steps: Sequence[Trigger],
        models: Answers,
        declared: Mapping[str, Declaration],
        closed: bool = True,
        state: Mapping[str, Any] | None = None,
        no_effect_on: NoEffectOn = (),
        streaming: bool = False,
    ) -> Ledger:
        """What the guard writes down while the agent does its steps in one run."""
        store = MemoryStore(clock=Ticking())
        journal = Journal(
            store=store,
            namespace=Namespace(agent=self.name),
            declarations=declared,
            version=version_of(agent),
            owner="w",
        )
        take = _Take(
            journal=journal,
            agent=agent,
            models={name: list(answers) for name, answers in models.items()},
            no_effect_on=no_effect_on,
            streaming=streaming,
        )
        asyncio.run(take.record(steps, dict(state or {}), closed=closed))
        header = Header(
            format=FORMAT,
            agent=self.name,
            canon=CANON_VERSION,
            guarded=True,
            tools={name: known.digest for name, known in declared.items()},
            declarations={known.digest: known for known in declared.values()},
        )
        return read(b"".join(seal_lines(header, list(store.read()))), name=f"{self.name}.jsonl")


@dataclass(kw_only=True)
class _Take:
    """One run being recorded."""

    journal: Journal
    agent: Path
    models: dict[str, list[object]]
    no_effect_on: NoEffectOn
    streaming: bool
    pending: Pending = field(default_factory=dict)

    async def record(
        self, steps: Sequence[Trigger], state: dict[str, Any], *, closed: bool
    ) -> None:
        module = _module(self.agent)
        app = getattr(module, "app", None)
        root = app.root_agent if app is not None else module.root_agent
        for node in _agents(root, set()):
            self._stage(node)
        plugin = RecordingPlugin(self.journal, no_effect_on=self.no_effect_on)
        others = list(app.plugins) if app is not None else []
        resumable = app.resumability_config if app is not None else None
        sessions = InMemorySessionService()
        whole = App(
            name="desk",
            root_agent=root,
            plugins=[plugin, *others],
            resumability_config=resumable or ResumabilityConfig(),
        )
        runner = Runner(app=whole, session_service=sessions)
        await sessions.create_session(app_name="desk", user_id="u", session_id="r1", state=state)
        self.journal.open_run("r1", app="desk", user="u", state=state)
        former = effect.install(plugin)
        try:
            for cursor, trigger in enumerate(steps):
                session = await sessions.get_session(app_name="desk", user_id="u", session_id="r1")
                assert session is not None
                await self._step(runner, cursor, trigger, session.state)
        finally:
            effect.install(former)
        if closed:
            self.journal.close_run("r1", status="complete")

    async def _step(
        self, runner: Runner, cursor: int, trigger: Trigger, state: Mapping[str, Any]
    ) -> None:
        message = _message(trigger, self.pending)
        attempt = self.journal.begin(
            "r1",
            cursor=cursor,
            trigger="message",
            message=message.model_dump(mode="json", exclude_none=True),
            state=state,
        )
        await self._try(runner, message, attempt)
        self.journal.end(attempt, outcome="done")
        self.journal.advance(attempt)

    async def _try(self, runner: Runner, message: types.Content, attempt: Attempt) -> None:
        for part in message.parts or ():
            if part.function_response is not None:
                self.pending.pop(part.function_response.id or "", None)
        config = (
            RunConfig.model_validate({"streaming_mode": "sse"}) if self.streaming else RunConfig()
        )
        with self.journal.within(attempt):
            async for event in runner.run_async(
                user_id="u", session_id="r1", new_message=message, run_config=config
            ):
                for call in event.get_function_calls():
                    if call.id in (event.long_running_tool_ids or ()):
                        self.pending[call.id or ""] = (call.name or "", call.args or {})

    def _stage(self, agent: Any) -> None:
        """Give an agent a model that answers as scripted; the class stays a real one's."""
        answers = self.models.get(agent.name, [])
        model = Gemini(model=agent.canonical_model.model)

        async def answer(
            request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            assert answers, f"{agent.name} asks its model once more"
            for response in _responses(answers.pop(0)):
                yield response

        vars(model)["generate_content_async"] = answer
        agent.model = model


def _responses(answer: object) -> Iterator[LlmResponse]:
    several = isinstance(answer, tuple)
    for one in answer if isinstance(answer, tuple) else (answer,):
        if isinstance(one, LlmResponse):
            yield one
        else:
            assert isinstance(one, list), several
            yield LlmResponse(content=types.Content(role="model", parts=one))


def _message(trigger: Trigger, pending: Pending) -> types.Content:
    if isinstance(trigger, str):
        return types.Content(role="user", parts=[types.Part(text=trigger)])
    return trigger(pending)


def _module(agent: Path) -> ModuleType:
    name = f"studio_{next(_MODULES)}"
    spec = importlib.util.spec_from_file_location(name, agent / "agent.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _agents(node: Any, seen: set[int]) -> Iterator[Any]:
    if id(node) in seen:
        return
    seen.add(id(node))
    children = [*(getattr(node, "sub_agents", None) or ())]
    children += getattr(getattr(node, "graph", None), "nodes", None) or ()
    for tool in getattr(node, "tools", None) or ():
        inner = getattr(tool, "agent", None)
        children += [inner] if inner is not None else []
    for child in children:
        yield from _agents(child, seen)
    if hasattr(node, "canonical_model"):
        yield node
