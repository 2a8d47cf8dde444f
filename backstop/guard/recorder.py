# ruff: noqa: ANN401, ARG002 - the framework's values are of any type, its hooks have its signatures
"""The ADK plugin that records a run and puts its effects behind the guard.

It only arms tools and models; the wrappers see the final arguments and the final request,
after every callback of the agent, exactly when the tool or the model runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Final, NamedTuple
from weakref import WeakSet

import msgspec
from google.adk.plugins.base_plugin import BasePlugin
from opentelemetry import trace as otel

from backstop.adk.arming import agent_of, arm, arm_model
from backstop.adk.control import STEERING, is_control
from backstop.adk.flow import note, redo, since
from backstop.adk.requests import RequestDigester
from backstop.core.events import EffectClaimed, ModelAnswered, RequestDigests, SessionKept
from backstop.core.identity import Declaration
from backstop.errors import BackstopError
from backstop.guard.calls import (
    Call,
    blocked_by_agent,
    intent_of,
    name_call,
    produced,
    read_of,
    refused,
    told,
    undecided,
    unfinished,
)
from backstop.guard.claim import perform, perform_now
from backstop.guard.desk import NoEffectOn, Produced
from backstop.guard.journal import Attempt, Journal, as_sent, current
from backstop.ports import Answer, Recorded

_NOWHERE: Final = "outside of a recorded step: begin an attempt before running the agent"
_MISSING: Final = object()


class _Asking(NamedTuple):
    """Who is about to ask a model, and where."""

    agent: str = ""
    branch: str = ""
    session: str = ""


_ASKING: Final[ContextVar[_Asking]] = ContextVar("backstop_asking", default=_Asking())  # noqa: B039 - it is immutable
_WITHIN: Final[ContextVar[str]] = ContextVar("backstop_within", default="")
"""The key of the call in whose body this runs."""


@contextmanager
def _inside(call: Call) -> Iterator[None]:
    """What is asked for in here is asked by the body of `call`."""
    token = _WITHIN.set(call.named.key)
    try:
        yield
    finally:
        _WITHIN.reset(token)


class RecordingPlugin(BasePlugin):
    """Records model answers, reads and effects of the attempt within which the runner runs.

    Also a sink for `@effect` functions. A call that cannot be guarded is refused in words,
    never by an exception, which would end the invocation with the call unanswered.
    """

    __backstop_guard__: ClassVar[bool] = True

    def __init__(
        self, journal: Journal, *, no_effect_on: NoEffectOn = (), name: str = "backstop"
    ) -> None:
        super().__init__(name)
        self._journal = journal
        self._no_effect_on = no_effect_on
        self._digester = RequestDigester()
        self._reached: WeakSet[Any] = WeakSet()
        self._turns: dict[tuple[object, ...], tuple[asyncio.Lock, int]] = {}

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Remember the session of the runner that this attempt drives: the first to begin."""
        attempt = current()
        if attempt is not None and not attempt.session:
            attempt.session = invocation_context.session.id

    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
        """Remember what the session holds, for as long as somebody may have to answer it."""
        attempt = current()
        if attempt is None or event.partial or invocation_context.session.id != attempt.session:
            return
        attempt.said.append(event)
        waiting = event.long_running_tool_ids or ()
        calls = event.get_function_calls() if waiting else ()
        attempt.waits |= any(call.id in waiting and call.name in STEERING for call in calls)

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """Keep the session of an attempt that waits: only it can be resumed."""
        attempt = current()
        if attempt is None or invocation_context.session.id != attempt.session:
            return
        if attempt.waits:
            said = [one.model_dump(mode="json", exclude_none=True) for one in attempt.said]
            self._journal.store.append(
                SessionKept(
                    run=attempt.run,
                    at="",
                    v=self._journal.version,
                    step=attempt.step,
                    attempt=attempt.number,
                    events=as_sent(said),
                )
            )
        attempt.said.clear()

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Arm the model that is about to be asked."""
        asking = callback_context._invocation_context  # noqa: SLF001 - no public way to it
        agent = asking.agent
        # An agent that sees its own turn only is the same wherever it stands.
        branch = "" if agent.include_contents == "none" else asking.branch or ""
        _ASKING.set(_Asking(agent.name, branch, asking.session.id))
        arm_model(agent.canonical_model, self._ask)

    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> None:
        """Arm the tool that is about to run."""
        if not is_control(tool):
            arm(tool, self._run)

    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> None:
        """Record a call that did not reach its tool, and what the framework's own tools said."""
        if tool_context in self._reached or current() is None:
            return
        agent = agent_of(tool_context)
        steering = is_control(tool)
        call = self._name(
            tool.name,
            tool_args,
            agent=agent,
            id=tool_context.function_call_id or "",
            declaration=Declaration(tool=tool.name, effect=False) if steering else None,
        )
        if isinstance(call, str):
            return  # it has no key; had it reached the guard, that would have refused it
        if steering:
            self._steered(call, result)
        elif call.declaration.effect:
            self._journal.store.append(blocked_by_agent(call, self._journal))

    def _steered(self, call: Call, result: Any) -> None:
        try:
            given = produced(result, {}, tool=call.tool)
        except BackstopError:
            given = Produced()  # only a rebuilt conversation would show it
        row = read_of(call, self._journal, given)
        self._journal.store.append(msgspec.structs.replace(row, decl="", steering=True))

    async def _ask(
        self,
        model: Any,
        request: Any,
        stream: bool,  # noqa: FBT001 - the framework's signature
        original: Callable[..., AsyncIterator[Any]],
    ) -> AsyncIterator[Any]:
        attempt = current()
        if attempt is None:
            async for response in original(request, stream=stream):
                yield response
            return
        asking = _ASKING.get()
        agent = asking.agent
        # Both before the model is asked: parallel agents must not trade places afterwards.
        digests = RequestDigests(**self._digester.digest(request)._asdict())
        ordinal = attempt.ordinal(agent)
        async for response in original(request, stream=stream):
            if not response.partial:
                self._answered(attempt, asking, ordinal, digests, response)
            yield response

    def _answered(
        self,
        attempt: Attempt,
        asking: _Asking,
        ordinal: int,
        digests: RequestDigests,
        response: Any,
    ) -> None:
        # Before it is handed on: the framework edits responses in place.
        self._journal.store.append(
            ModelAnswered(
                run=attempt.run,
                at="",
                v=self._journal.version,
                step=attempt.step,
                agent=asking.agent,
                ordinal=ordinal,
                attempt=attempt.number,
                request=digests,
                response=as_sent(response.model_dump(mode="json", exclude_none=True)),
                within=_WITHIN.get(),
                apart=asking.session not in {"", attempt.session},
                branch=asking.branch,
            )
        )

    async def _run(
        self,
        tool: Any,
        args: dict[str, Any],
        tool_context: Any,
        original: Callable[..., Awaitable[Any]],
    ) -> Any:
        agent = agent_of(tool_context)
        call = self._name(tool.name, args, agent=agent, id=tool_context.function_call_id or "")
        if isinstance(call, str):
            return refused(call)
        self._reached.add(tool_context)
        delta = tool_context.actions.state_delta

        async def run() -> Produced:
            before, flow = dict(delta), note(tool_context)
            with _inside(call):
                result = await original(args=args, tool_context=tool_context)
            changed = {k: v for k, v in delta.items() if before.get(k, _MISSING) is not v}
            actions = since(flow, tool_context)
            return produced(result, changed, tool=tool.name, actions=actions)

        if not call.declaration.effect:
            return await self._read(call, run)
        intent = self._intent(call)
        # A model may ask twice in one breath: the second call gets what the first one got,
        # rather than hear that its own attempt is at it.
        async with self._in_turn(call):
            answer = await perform(
                self._journal.store, intent, run, no_effect_on=self._no_effect_on
            )
        if isinstance(answer, Recorded):
            tool_context.state.update(msgspec.json.decode(answer.state_delta) or {})
            redo(msgspec.json.decode(answer.actions) or {}, tool_context)
        return self._told(call, answer)

    @asynccontextmanager
    async def _in_turn(self, call: Call) -> AsyncIterator[None]:
        """Equal calls of one attempt, one after the other; all others at once."""
        if call.within:  # in a body that may itself have the turn: it would wait for itself
            yield
            return
        name = (call.attempt.run, call.attempt.step, call.attempt.number, call.named.key)
        turn, waiting = self._turns.get(name, (asyncio.Lock(), 0))
        self._turns[name] = turn, waiting + 1
        try:
            async with turn:
                yield
        finally:
            turn, waiting = self._turns.pop(name)
            if waiting > 1:
                self._turns[name] = turn, waiting - 1

    async def _read(self, call: Call, run: Callable[[], Awaitable[Produced]]) -> Any:
        try:
            found = await run()
        except Exception as error:
            self._journal.store.append(read_of(call, self._journal, Produced(), error))
            raise
        self._journal.store.append(read_of(call, self._journal, found))
        return msgspec.json.decode(found.result)

    def call(self, tool: str, arguments: dict[str, Any], run: Callable[[], Any]) -> Any:
        """Answer the call of a plain `@effect` function.

        Raises `BackstopError` (``effect-refused``) where the call cannot be guarded.
        """
        call = self._named(tool, arguments)
        intent = self._intent(call)

        def body() -> Produced:
            with _inside(call):
                return produced(run(), {}, tool=tool)

        answer = perform_now(
            self._journal.store,
            intent,
            body,
            no_effect_on=self._no_effect_on,
        )
        return self._told(call, answer)

    async def acall(
        self, tool: str, arguments: dict[str, Any], run: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Answer the call of an `@effect` coroutine function; raises as `call` does."""
        call = self._named(tool, arguments)

        async def awaited() -> Produced:
            with _inside(call):
                return produced(await run(), {}, tool=tool)

        intent = self._intent(call)
        answer = await perform(
            self._journal.store, intent, awaited, no_effect_on=self._no_effect_on
        )
        return self._told(call, answer)

    def _named(self, tool: str, arguments: Mapping[str, Any]) -> Call:
        call = self._name(tool, arguments, agent="", id="")
        if isinstance(call, str):
            raise BackstopError(f"{tool} was not run: {call}", slug="effect-refused")
        return call

    def _name(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        declaration: Declaration | None = None,
        **about: str,
    ) -> Call | str:
        attempt = current()
        if attempt is None:
            return _NOWHERE
        declared = self._journal.declarations.get(tool) or Declaration(tool=tool)
        span = otel.get_current_span().get_span_context()
        if span.is_valid:
            about |= {"trace": f"{span.trace_id:032x}", "span": f"{span.span_id:016x}"}
        return name_call(
            tool,
            arguments,
            declaration or declared,
            attempt=attempt,
            namespace=self._journal.namespace,
            within=_WITHIN.get(),
            **about,
        )

    def _intent(self, call: Call) -> EffectClaimed:
        # Undecided until told otherwise: an error on the way must hold the cursor.
        call.attempt.effects[call.named.key] = undecided(call)
        return intent_of(call, self._journal)

    def _told(self, call: Call, answer: Answer) -> Any:
        call.attempt.effects[call.named.key] = unfinished(answer, call)
        return told(answer)
