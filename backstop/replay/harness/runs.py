"""Plays runs: one process for each, forked off the warm candidate, through the real Runner."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import aclosing
from importlib.util import find_spec
from typing import Any, Final

from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.events.event import Event
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.runners import Runner
from google.genai import types

from ...core.canon import NotCanonical, canonical
from .calls import PLUGIN_NAME, Calls, ReplayPlugin, Step
from .candidate import Candidate, place, said
from .channel import Channel, Message, Raw
from .frozen import Frozen
from .lookout import Lookout
from .sessions import ReplaySessions
from .survey import is_guard
from .toolsets import Toolsets
from .trace import log_digest, run_config
from .waiting import Waiting

_GRACE_S: Final = 5.0
_ABSENT: Final = ("google.adk.agents.remote_a2a_agent", "google.adk.a2a.agent._remote_a2a_agent")


def tune() -> None:
    """What makes every replay cheaper and changes nothing that can be seen."""
    if find_spec("a2a") is None:
        for name in _ABSENT:
            # The framework tries to import it at every turn, and fails at every turn.
            sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def intercept(plugin: ReplayPlugin) -> None:
    """Have every Runner of this process run our plugin first, and the guard's not at all.

    Runners are also made inside the framework (`AgentTool`, with or without the plugins of
    its caller) and by the candidate itself; their tools may not run for real either.
    """
    original = Runner.__init__

    def init(self: Runner, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        plugins = self.plugin_manager.plugins
        kept = [p for p in plugins if not is_guard(p) and p.name != PLUGIN_NAME]
        kept = [p for p in kept if type(p).__name__ != "ModelArmorPlugin"]
        self.plugin_manager.plugins = [plugin, *kept]

    Runner.__init__ = init  # type: ignore[method-assign]


class Run:
    """One run of the ledger in this process: its session, its steps, its digest."""

    def __init__(
        self,
        *,
        candidate: Candidate,
        channel: Channel,
        calls: Calls,
        frozen: Frozen,
        lookout: Lookout,
        waiting: Waiting,
        toolsets: Toolsets,
    ) -> None:
        self.waiting = waiting
        self._toolsets = toolsets
        self._candidate = candidate
        self._channel = channel
        self._calls = calls
        self._frozen = frozen
        self._lookout = lookout
        self._pending: dict[str, Message] = {}
        self._config = run_config()

    async def play(self, begin: Message) -> Message:
        """Play all steps that the driver gives; the `run_done` message without its id."""
        self._channel.attach(asyncio.get_running_loop())
        self._frozen.begin(begin["at"], 0)
        self._toolsets.serve(begin.get("toolsets") or {})
        sessions = ReplaySessions(begin.get("window"))
        app_name = begin.get("app") or self._candidate.name
        user = begin.get("user") or "user"
        await sessions.create_session(
            app_name=app_name,
            user_id=user,
            session_id=begin["run"],
            state=begin.get("state") or {},
        )
        session = sessions.stored(app_name, user, begin["run"])
        session.events.extend(Event.model_validate(event) for event in begin.get("history") or ())
        runner = self._runner(sessions, app_name)
        answer = await self._channel.ask({"t": "run_ready"})
        while answer["t"] == "step":
            sessions.reach_back_to(session, _answered_calls(answer["message"]))
            step = await self._step(runner, answer, user=user, run=begin["run"])
            step["state"] = Raw(_state_text(sessions.state_of(session)))
            self._lookout.collect()
            self._lookout.step = ""
            answer = await self._channel.ask(step)
        self._channel.detach()
        return {
            "t": "run_done",
            "run": begin["run"],
            "events": len(session.events),
            "digest": log_digest(session.events),
        }

    def _runner(self, sessions: ReplaySessions, app_name: str) -> Runner:
        services: dict[str, Any] = {
            "session_service": sessions,
            "artifact_service": InMemoryArtifactService(),
            "memory_service": InMemoryMemoryService(),
        }
        if self._candidate.app is not None:
            return Runner(app=self._candidate.app, app_name=app_name, **services)
        if hasattr(self._candidate.root, "sub_agents"):
            return Runner(agent=self._candidate.root, app_name=app_name, **services)
        return Runner(node=self._candidate.root, app_name=app_name, **services)

    async def _step(self, runner: Runner, begin: Message, *, user: str, run: str) -> Message:
        self._frozen.step(begin["at"], begin["seed"])
        step = Step(begin["step"])
        self._lookout.step = step.name
        self._calls.begin(step)
        counted = _Counted()
        play = self._drive(runner, begin["message"], user=user, run=run, counted=counted)
        step.task = asyncio.create_task(play)
        error = await self._outcome(step)
        return {
            "t": "step_done",
            "step": step.name,
            "outcome": step.outcome,
            "events": counted.events,
            "error": error,
            "pending": list(self._pending.values()),
        }

    async def _outcome(self, step: Step) -> str:
        """Wait for the step to end; what went wrong, if the candidate itself did."""
        task = step.task
        assert task is not None  # noqa: S101 - it was just set
        while not task.done():
            # A step that was told to end, and whose code swallows the cancelling, is left behind.
            timeout = None if step.outcome == "done" else _GRACE_S
            await asyncio.wait({task}, timeout=timeout)
            if timeout is not None and not task.done():
                return ""
        if step.outcome != "done":
            _cancel_all_but_this()
            return ""
        if task.cancelled():
            step.outcome = "fault"
            return "the candidate cancelled its own step"
        error = task.exception()
        if error is None:
            return ""
        step.outcome = "fault"
        return f"{said(error)} at {place(error, self._candidate.folder)}"

    async def _drive(
        self, runner: Runner, message: Any, *, user: str, run: str, counted: _Counted
    ) -> None:
        content = types.Content.model_validate(message)
        for part in content.parts or ():
            if part.function_response is not None:
                self._pending.pop(part.function_response.id or "", None)
        stream = runner.run_async(
            user_id=user, session_id=run, new_message=content, run_config=self._config
        )
        async with aclosing(stream) as events:
            async for event in events:
                if not event.partial:
                    counted.events += 1
                self._note_pending(event)

    def _note_pending(self, event: Any) -> None:
        waiting = event.long_running_tool_ids or ()
        for call in event.get_function_calls():
            if call.id in waiting:
                told: Message = {"id": call.id, "name": call.name, "args": _plain(call.args)}
                original = (call.args or {}).get("originalFunctionCall")
                if isinstance(original, dict):
                    told["original"] = {
                        "name": original.get("name"),
                        "args": _plain(original.get("args") or {}),
                    }
                self._pending[call.id] = told


def _answered_calls(message: Any) -> set[str]:
    """The ids of the calls that a message answers from outside."""
    content = types.Content.model_validate(message)
    answers = [part.function_response for part in content.parts or ()]
    return {answer.id for answer in answers if answer is not None and answer.id}


def _cancel_all_but_this() -> None:
    """What waits for answers of a step that has ended shall not ask in the next one."""
    for task in asyncio.all_tasks():
        if task is not asyncio.current_task():
            task.cancel()


class _Counted:
    """How many events a step has yielded so far."""

    def __init__(self) -> None:
        self.events = 0


def _plain(value: Any) -> Any:
    return json.loads(_state_text(value)) if value is not None else None


def _state_text(value: Any) -> str:
    """JSON text of a value; members without a canonical form as their `repr`."""
    try:
        return canonical(value)
    except NotCanonical:
        if isinstance(value, dict):
            return canonical({str(name): _readable(item) for name, item in value.items()})
        return canonical(_readable(value))


def _readable(value: Any) -> Any:
    try:
        canonical(value)
    except NotCanonical:
        return ascii(value)
    return value


def play(run: Run, begin: Message) -> Message:
    """Play a run to its end on a fresh event loop, which is left as it is afterwards.

    Closing it would wait for the candidate's threads; this process ends with the run.
    """
    loop = run.waiting.loop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(run.play(begin))
