# ruff: noqa: ANN401, ARG002 - the framework's values are of any type, its hooks have its signatures
"""The ADK plugin that records a run and puts its effects behind the guard.

It only arms tools and models; the wrappers see the final arguments and the final request,
after every callback of the agent, exactly when the tool or the model runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, ClassVar, Final

import msgspec
from google.adk.plugins.base_plugin import BasePlugin
from opentelemetry import trace as otel

from backstop.adk.arming import arm, arm_model
from backstop.adk.control import is_control
from backstop.adk.requests import RequestDigester
from backstop.core.events import EffectClaimed, ModelAnswered, RequestDigests
from backstop.core.identity import Declaration
from backstop.errors import BackstopError
from backstop.guard.calls import (
    Call,
    intent_of,
    name_call,
    produced,
    read_of,
    refused,
    told,
    undecided,
    unfinished,
)
from backstop.guard.claim import NoEffectOn, Produced, perform, perform_now
from backstop.guard.journal import Attempt, Journal, as_sent, current
from backstop.ports import Answer, Recorded

_NOWHERE: Final = "outside of a recorded step: begin an attempt before running the agent"
_MISSING: Final = object()

_ASKING: Final[ContextVar[str]] = ContextVar("backstop_asking_agent", default="")


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

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Arm the model that is about to be asked."""
        agent = callback_context._invocation_context.agent  # noqa: SLF001 - no public way to it
        _ASKING.set(agent.name)
        arm_model(agent.canonical_model, self._ask)

    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> None:
        """Arm the tool that is about to run."""
        if not is_control(tool):
            arm(tool, self._run)

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
        agent = _ASKING.get()
        # Both before the model is asked: parallel agents must not trade places afterwards.
        digests = RequestDigests(**self._digester.digest(request)._asdict())
        ordinal = attempt.ordinal(agent)
        async for response in original(request, stream=stream):
            if not response.partial:
                self._answered(attempt, agent, ordinal, digests, response)
            yield response

    def _answered(
        self, attempt: Attempt, agent: str, ordinal: int, digests: RequestDigests, response: Any
    ) -> None:
        # Before it is handed on: the framework edits responses in place.
        self._journal.store.append(
            ModelAnswered(
                run=attempt.run,
                at="",
                v=self._journal.version,
                step=attempt.step,
                agent=agent,
                ordinal=ordinal,
                attempt=attempt.number,
                request=digests,
                response=as_sent(response.model_dump(mode="json", exclude_none=True)),
            )
        )

    async def _run(
        self,
        tool: Any,
        args: dict[str, Any],
        tool_context: Any,
        original: Callable[..., Awaitable[Any]],
    ) -> Any:
        agent = "" if tool_context.agent_name == "unknown" else tool_context.agent_name
        call = self._name(tool.name, args, agent=agent, id=tool_context.function_call_id or "")
        if isinstance(call, str):
            return refused(call)
        delta = tool_context.actions.state_delta

        async def run() -> Produced:
            before = dict(delta)
            result = await original(args=args, tool_context=tool_context)
            changed = {k: v for k, v in delta.items() if before.get(k, _MISSING) is not v}
            return produced(result, changed, tool=tool.name)

        if not call.declaration.effect:
            return await self._read(call, run)
        intent = self._intent(call)
        answer = await perform(self._journal.store, intent, run, no_effect_on=self._no_effect_on)
        if isinstance(answer, Recorded):
            tool_context.state.update(msgspec.json.decode(answer.state_delta) or {})
        return self._told(call, answer)

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
        answer = perform_now(
            self._journal.store,
            intent,
            lambda: produced(run(), {}, tool=tool),
            no_effect_on=self._no_effect_on,
        )
        return self._told(call, answer)

    async def acall(
        self, tool: str, arguments: dict[str, Any], run: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Answer the call of an `@effect` coroutine function; raises as `call` does."""
        call = self._named(tool, arguments)

        async def awaited() -> Produced:
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

    def _name(self, tool: str, arguments: Mapping[str, Any], **about: str) -> Call | str:
        attempt = current()
        if attempt is None:
            return _NOWHERE
        declaration = self._journal.declarations.get(tool) or Declaration(tool=tool)
        span = otel.get_current_span().get_span_context()
        if span.is_valid:
            about |= {"trace": f"{span.trace_id:032x}", "span": f"{span.span_id:016x}"}
        return name_call(
            tool,
            arguments,
            declaration,
            attempt=attempt,
            namespace=self._journal.namespace,
            **about,
        )

    def _intent(self, call: Call) -> EffectClaimed:
        # Undecided until told otherwise: an error on the way must hold the cursor.
        call.attempt.effects[call.named.key] = undecided(call)
        return intent_of(call, self._journal)

    def _told(self, call: Call, answer: Answer) -> Any:
        call.attempt.effects[call.named.key] = unfinished(answer, call)
        return told(answer)
