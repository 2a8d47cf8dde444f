"""What the candidate asks for while it runs: tools, effects and models, answered by the driver."""

from __future__ import annotations

import asyncio
import builtins
import contextvars
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, Never, Protocol

from google.adk.models.llm_response import LlmResponse
from google.adk.plugins import BasePlugin

from ...adk.arming import agent_of, arm, arm_model
from ...adk.control import is_control
from ...adk.flow import redo
from ...adk.requests import Counterparts, RequestDigester
from ...core.canon import NotCanonical, canonical
from .channel import Channel, Message, Raw
from .frozen import Frozen
from .lookout import Lookout
from .requests import whole

PLUGIN_NAME: Final = "backstop_replay"
_NOTHING: Final = Raw("{}")
_asking: contextvars.ContextVar[str] = contextvars.ContextVar("backstop_asking", default="")


class StepEnded(BaseException):
    """There is nothing more to answer in this step; no handler of the candidate's may go on."""


class Step:
    """One step in progress: how it will have ended, and who asked how often."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.outcome = "done"
        self.task: asyncio.Task[None] | None = None
        self._asked: Counter[str] = Counter()

    def ordinal(self, agent: str) -> int:
        """The number of earlier model requests of this agent in this step."""
        self._asked[agent] += 1
        return self._asked[agent] - 1

    def end(self, outcome: str) -> None:
        """Have the step end as `outcome`; callable from any thread."""
        if self.outcome == "done":
            self.outcome = outcome
        task = self.task
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)


class Calls:
    """Answers the candidate's calls through the channel; one for a process, steps in turn."""

    def __init__(self, *, channel: Channel, frozen: Frozen, lookout: Lookout) -> None:
        self._channel = channel
        self._frozen = frozen
        self._lookout = lookout
        self._digester = RequestDigester()
        self._counterparts = Counterparts()
        self._step: Step | None = None

    def begin(self, step: Step) -> None:
        """From now on what is asked belongs to `step`."""
        self._step = step

    async def execute(
        self,
        tool: Any,
        args: dict[str, Any],
        tool_context: Any,
        original: Callable[..., Awaitable[Any]],
    ) -> Any:
        """In place of a tool's `run_async`: its recorded result, or its recorded error raised."""
        if is_control(tool):
            return await original(args=args, tool_context=tool_context)
        asked = _asked(
            tool,
            args,
            agent=agent_of(tool_context),
            call=getattr(tool_context, "function_call_id", "") or "",
        )
        reply = await self._ask(asked)
        if reply.get("missing"):
            await self._stop(reply["missing"])
        result = self._answered(tool.name, args, reply)
        for name, value in (reply.get("state_delta") or {}).items():
            tool_context.state[name] = value
        redo(reply.get("actions") or {}, tool_context)
        return result

    async def generate(
        self,
        model: Any,
        request: Any,
        stream: bool,  # noqa: FBT001 - the framework's signature
        original: Callable[..., AsyncIterator[Any]],
    ) -> AsyncIterator[Any]:
        """In place of a model's `generate_content_async`: the recorded response, or a live one."""
        agent = _asking.get() or (request.config.labels or {}).get("adk_agent_name", "")
        digests = self._digester.digest(request, self._counterparts)
        step = self._step
        asked = {
            "t": "model",
            "agent": agent,
            "ordinal": step.ordinal(agent) if step is not None else 0,
            **digests._asdict(),
        }
        reply = await self._ask(asked)
        if limit := reply.get("send"):
            reply = await self._ask(whole(model, request, of=reply["id"], limit=limit))
        if reply.get("missing") or reply.get("response") is None:
            await self._stop(reply.get("missing") or "none")
        self._frozen.move(reply.get("now") or "")
        for response in (reply["response"], *(reply.get("more") or ())):
            # A fresh one each time: the framework changes it in place.
            yield LlmResponse.model_validate(response)

    def call(self, tool: str, arguments: dict[str, Any], run: Callable[[], Any]) -> Any:
        """In place of a plain `@effect` function, on whatever thread it was called."""
        if self._step is None:
            self._refuse_early(tool)
        self._lookout.collect()
        reply = self._channel.ask_blocking(intent(tool, arguments, via="effect"))
        if reply.get("missing"):
            self._end(reply["missing"])
            raise StepEnded
        return self._answered(tool, arguments, reply)

    async def acall(
        self, tool: str, arguments: dict[str, Any], run: Callable[[], Awaitable[Any]]
    ) -> Any:
        """In place of an `@effect` coroutine function."""
        if self._step is None:
            self._refuse_early(tool)
        reply = await self._ask(intent(tool, arguments, via="effect"))
        if reply.get("missing"):
            await self._stop(reply["missing"])
        return self._answered(tool, arguments, reply)

    def asking(self, agent: str) -> None:
        """This task is about to ask a model in the name of `agent`."""
        _asking.set(agent)

    async def _ask(self, message: Message) -> Message:
        self._lookout.collect()
        return await self._channel.ask(message)

    def _answered(self, tool: str, args: dict[str, Any], reply: Message) -> Any:
        self._frozen.move(reply.get("now") or "")
        if counterpart := reply.get("counterpart"):
            self._counterparts.add(
                name=tool,
                args=args,
                recorded_name=counterpart["name"],
                recorded_args=counterpart.get("args") or {},
            )
        if reply.get("error_type"):
            raise recorded_error(reply["error_type"], reply.get("error_message") or "")
        return reply.get("result")

    def _refuse_early(self, tool: str) -> Never:
        self._channel.tell(
            {"t": "escape", "what": "effect outside a step", "detail": tool, "step": ""}
        )
        raise RuntimeError(f"effect {tool} was called outside a step: it has no place in a replay")

    def _end(self, missing: str) -> None:
        if self._step is not None:
            self._step.end("end_of_record" if missing == "end_of_record" else "unanswered")

    async def _stop(self, missing: str) -> Never:
        """End the step and never return to the candidate, whatever its handlers catch."""
        self._end(missing)
        await asyncio.get_running_loop().create_future()
        raise StepEnded


class Answers(Protocol):
    """What armed tools and models lead to."""

    def asking(self, agent: str) -> None:
        """Hear that this task is about to ask a model in the name of `agent`."""

    async def execute(
        self,
        tool: Any,
        args: dict[str, Any],
        tool_context: Any,
        original: Callable[..., Awaitable[Any]],
    ) -> Any:
        """Answer a tool's call."""

    def generate(
        self,
        model: Any,
        request: Any,
        stream: bool,  # noqa: FBT001 - the framework's signature
        original: Callable[..., AsyncIterator[Any]],
    ) -> AsyncIterator[Any]:
        """Answer a model request."""


class ReplayPlugin(BasePlugin):
    """Arms tools and models just before they run; answers nothing itself."""

    def __init__(self, calls: Answers) -> None:
        super().__init__(PLUGIN_NAME)
        self._calls = calls

    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> None:
        """Arm the tool: the agent's own callbacks may still change or refuse this call."""
        arm(tool, self._calls.execute)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Arm the model: a response given here would skip the agent's own callbacks."""
        agent = callback_context._invocation_context.agent  # noqa: SLF001 - the only way to the agent's model from here
        self._calls.asking(agent.name)
        arm_model(agent.canonical_model, self._calls.generate)


def _asked(tool: Any, args: dict[str, Any], **told: str) -> Message:
    """The message of a tool's call, with the key that its own `@effect` makes of the arguments."""
    said = getattr(getattr(tool, "func", None), "__backstop_declared__", None)
    if said is None:
        return intent(tool.name, args, **told)
    try:
        keyed = said.keyed(args)
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything
        why = f"no-identity: its key could not be made: {type(error).__name__}: {error}"
        return {"t": "intent", "tool": tool.name, **told, "args": _NOTHING, "refused": why}
    return intent(tool.name, keyed, **told)


def intent(tool: str, args: dict[str, Any], **told: str) -> Message:
    """The message that asks for a call; arguments without a JSON form say why in `refused`."""
    asked: Message = {"t": "intent", "tool": tool, **told}
    try:
        return {**asked, "args": Raw(canonical(dict(args)))}
    except NotCanonical as refused:
        return {**asked, "args": _NOTHING, "refused": f"{refused.slug}: {refused}"}


def recorded_error(name: str, message: str) -> Exception:
    """An exception of the recorded class, so that the candidate's handlers know it.

    Builtins first, then any exception class of that name that is loaded, else a new one.
    """
    builtin = getattr(builtins, name, None)
    kind: type[Exception]
    if isinstance(builtin, type) and issubclass(builtin, Exception):
        kind = builtin
    else:
        kind = _loaded(name) or type(name, (RuntimeError,), {})
    try:
        return kind(message)
    except Exception:  # noqa: BLE001 - a class that wants other arguments
        error = kind.__new__(kind)
        error.args = (message,)
        return error


def _loaded(name: str) -> type[Exception] | None:
    waiting: list[type[Exception]] = [Exception]
    seen: set[type] = set()
    while waiting:
        kind = waiting.pop()
        if kind in seen:
            continue
        seen.add(kind)
        if kind.__name__ == name:
            return kind
        waiting.extend(kind.__subclasses__())
    return None
