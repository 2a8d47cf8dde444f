# ruff: noqa: ANN401, ARG002 - the framework's values are of any type, its hooks have its signatures
"""The ADK plugin that records a run and puts its effects behind the guard.

It only arms tools and models; the wrappers see the final arguments and the final request,
after every callback of the agent, exactly when the tool or the model runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from google.adk.plugins.base_plugin import BasePlugin

from backstop.adk.arming import arm
from backstop.adk.control import STEERING, is_control
from backstop.core.events import SessionKept
from backstop.guard.claims.desk import NoEffectOn
from backstop.guard.claims.offloop import written
from backstop.guard.claims.safety import Safety
from backstop.guard.journal import Attempt, Journal, as_sent, current
from backstop.guard.plugin.functions import serve_coroutine, serve_function
from backstop.guard.plugin.listings import hear_toolsets
from backstop.guard.plugin.models import ModelRecorder
from backstop.guard.plugin.nested import is_hidden, run_with
from backstop.guard.plugin.router import ROUTER
from backstop.guard.plugin.scope import Closed, Scope, around, begin, hang, leave, scope_of, serving
from backstop.guard.plugin.station import Station
from backstop.guard.plugin.toolcalls import NOWHERE, Asked, has_reached, serve_tool, tell_unreached
from backstop.ports import Judge


class GuardPlugin(BasePlugin):
    """Arms tools and models, and serves their calls for the attempt that a run belongs to.

    A call that cannot be guarded is refused in words, never by an exception, which would end
    the invocation with the call unanswered. Also a sink for `@effect` functions.
    """

    __backstop_guard__: ClassVar[bool] = True

    only_observes: bool = False
    """Whether it was made to refuse nothing, whatever else is said of its agent."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._models = ModelRecorder()

    def _is_spare(self, context: Any) -> bool:
        """Whether another guard of the same run serves it: one that refuses comes first.

        An app may attach one, and its server load one: the run would be told twice.
        """
        plugins = context.plugin_manager.plugins
        guards = [one for one in plugins if isinstance(one, GuardPlugin)]
        return (
            len(guards) > 1
            and min(guards, key=lambda one: (one.only_observes, one.name)) is not self
        )

    async def _station_of(self, context: Any) -> Station | Closed:
        """Where the calls of the run are served that has the framework's `context`."""
        raise NotImplementedError

    # --- a run of a runner ---

    async def before_run_callback(self, *, invocation_context: Any) -> Any:
        """Find out to which attempt this run belongs."""
        if self._is_spare(invocation_context):
            return
        outer = around()
        if outer is not None:  # a runner within a tool, or within an agent's own code
            hang(outer, invocation_context)
            return
        scope = await self._scope_for(invocation_context)
        begin(scope, invocation_context)
        if scope.attempt is not None or not scope.driven:
            ROUTER.know(scope)

    async def _scope_for(self, context: Any) -> Scope:
        """The scope of a run that no other run is around: here, that of its driver's attempt."""
        attempt = current()
        if attempt is not None and not attempt.session:
            attempt.session = context.session.id
        station = await self._station_of(context)
        return Scope(sink=self, station=station, attempt=attempt, driven=True)

    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
        """Remember what the session holds, for as long as somebody may have to answer it."""
        scope = scope_of(invocation_context)
        if scope is None or self._is_spare(invocation_context):
            return
        queue = getattr(invocation_context, "_event_queue", None)
        if scope.is_of(invocation_context) and queue is not None:
            # Its nodes run in tasks of their own; this one is its consumer's, who may go.
            leave(scope)
        attempt = scope.attempt
        if attempt is None or event.partial or invocation_context.session.id != attempt.session:
            return
        attempt.said.append(event)
        waiting = event.long_running_tool_ids or ()
        calls = event.get_function_calls() if waiting else ()
        attempt.waits |= any(call.id in waiting and call.name in STEERING for call in calls)

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """Keep the session of an attempt that waits: only it can be resumed."""
        scope = scope_of(invocation_context)
        if scope is None or not scope.is_of(invocation_context):
            return
        if not self._is_spare(invocation_context):
            await self._over(scope)

    async def _over(self, scope: Scope, error: Exception | None = None) -> None:
        """A run is over, well or with an error."""
        scope.over = True
        leave(scope)
        if error is None:
            await self._keep_session(scope)

    async def _keep_session(self, scope: Scope) -> None:
        attempt, station = scope.attempt, scope.station
        if attempt is None or isinstance(station, Closed):
            return
        if attempt.waits:
            said = [one.model_dump(mode="json", exclude_none=True) for one in attempt.said]
            kept = SessionKept(
                run=attempt.run,
                at="",
                v=station.journal.version,
                step=attempt.step,
                attempt=attempt.number,
                events=as_sent(station.journal.redaction.answer(said)),
            )
            await written(station.journal.store, kept)
        attempt.said.clear()

    # --- what it asks for ---

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> Any:
        """Hear what the agent's toolsets list: they are asked before its model is."""
        asking = callback_context._invocation_context  # noqa: SLF001 - no public way to it
        scope = scope_of(asking)
        if scope is None or scope.attempt is None or self._is_spare(asking):
            return
        if isinstance(scope.station, Station):
            hear_toolsets(agent, scope.station)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Arm the model that is about to be asked."""
        asking = callback_context._invocation_context  # noqa: SLF001 - no public way to it
        if self._is_spare(asking):
            return
        scope = scope_of(asking)
        attempt = None if scope is None else scope.attempt
        station = None if scope is None else scope.station
        journal = station.journal if isinstance(station, Station) else None
        self._models.arm(asking, attempt, journal)

    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> None:
        """Arm the tool that is about to run."""
        if self._is_spare(tool_context._invocation_context):  # noqa: SLF001 - no public way to it
            return
        if not is_control(tool):
            arm(tool, self._run)
        elif is_hidden(tool):
            arm(tool, partial(run_with, self))

    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> None:
        """Record a call that did not reach its tool, and what the framework's own tools said."""
        scope = _scope(tool_context)
        if scope is None or scope.attempt is None or has_reached(tool_context):
            return
        if self._is_spare(tool_context._invocation_context):  # noqa: SLF001 - no public way to it
            return
        if not isinstance(scope.station, Closed):
            asked = Asked(tool=tool, args=tool_args, context=tool_context, original=tool.run_async)
            await tell_unreached(asked, result, scope.station, scope.attempt)

    # --- a call at the last moment ---

    async def _run(
        self,
        tool: Any,
        args: dict[str, Any],
        tool_context: Any,
        original: Callable[..., Awaitable[Any]],
    ) -> Any:
        # Another agent's guard may have armed the same tool later: the scope knows whose it is.
        scope = _scope(tool_context)
        station = Closed(why=NOWHERE) if scope is None else scope.station
        attempt = None if scope is None else scope.attempt
        asked = Asked(tool=tool, args=args, context=tool_context, original=original)
        return await serve_tool(asked, station, attempt)

    def call(self, tool: str, arguments: dict[str, Any], run: Callable[[], Any]) -> Any:
        """Answer the call of a plain `@effect` function.

        Raises `BackstopError` (``effect-refused``) where the call cannot be guarded.
        """
        station, attempt = self._of_function()
        return serve_function(station, attempt, tool, arguments, run)

    async def acall(
        self, tool: str, arguments: dict[str, Any], run: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Answer the call of an `@effect` coroutine function; raises as `call` does."""
        station, attempt = self._of_function()
        return await serve_coroutine(station, attempt, tool, arguments, run)

    def _of_function(self) -> tuple[Station | Closed, Attempt | None]:
        """Where a function's call is served that is made in this context."""
        scope = serving()
        if scope is None:
            return Closed(why=NOWHERE), None
        return scope.station, scope.attempt


class RecordingPlugin(GuardPlugin):
    """The guard of runs whose attempts a driver begins and ends, with `journal`.

    `safety` says what is known of tools, `no_effect_on` holds for those of which it says
    nothing. `judge` is as `Station` takes it.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        no_effect_on: NoEffectOn = (),
        safety: Mapping[str, Safety] | None = None,
        unsaid: Safety | None = None,
        observing: bool = False,
        judge: Judge | None = None,
        name: str = "backstop",
    ) -> None:
        super().__init__(name)
        self._station = Station(
            journal=journal,
            safety={} if safety is None else safety,
            unsaid=unsaid or Safety(no_effect_on=no_effect_on, lease_s=0),
            observing=observing,
            judge=judge,
        )

    async def _station_of(self, context: Any) -> Station | Closed:
        return self._station

    def _of_function(self) -> tuple[Station | Closed, Attempt | None]:
        return self._station, current()


def _scope(tool_context: Any) -> Scope | None:
    return scope_of(tool_context._invocation_context)  # noqa: SLF001 - no public way to it
