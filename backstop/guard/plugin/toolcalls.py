# ruff: noqa: ANN401 - the framework's values are of any type
"""A tool's call at the last moment, and the calls that never came so far."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from backstop.adk.arming import agent_of
from backstop.adk.begun import watched
from backstop.adk.control import is_control
from backstop.adk.flow import note, redo, since
from backstop.core.declaration import Declaration
from backstop.core.events import BY_AGENT, BY_PERSON, CallBlocked
from backstop.errors import BackstopError
from backstop.guard.calls import (
    Call,
    apart,
    blocked,
    inside,
    name_call,
    produced,
    read_of,
    within,
)
from backstop.guard.claims.capability import Keyed
from backstop.guard.claims.desk import Produced
from backstop.guard.claims.offloop import asked as off_loop
from backstop.guard.claims.offloop import written
from backstop.guard.effect import declared_by, passing
from backstop.guard.journal import Attempt
from backstop.guard.plugin.scope import Closed
from backstop.guard.plugin.spans import REFUSED, ids, mark
from backstop.guard.plugin.station import EffectRefused, Station
from backstop.guard.results import refused
from backstop.ports import Recorded

NOWHERE: Final = "outside of a recorded step: begin an attempt before running the agent"

_log: Final = logging.getLogger("backstop")

_MISSING: Final = object()
_REACHED: Final = "__backstop_reached__"


@dataclass(slots=True, kw_only=True)
class Asked:
    """A call as the framework makes it: `original` is the tool's own way of running."""

    tool: Any
    args: dict[str, Any]
    context: Any
    original: Callable[..., Awaitable[Any]]

    async def run(self) -> Any:
        """Make the call as it was asked for."""
        return await self.original(args=self.args, tool_context=self.context)


def has_reached(tool_context: Any) -> bool:
    """Whether the call of this context came to its tool, and so has a row already."""
    return vars(tool_context).get(_REACHED, False) is True


async def serve_tool(asked: Asked, station: Station | Closed, attempt: Attempt | None) -> Any:
    """What the agent gets of a tool's call: never an exception that the tool did not raise."""
    vars(asked.context)[_REACHED] = True
    if isinstance(station, Closed):
        return await _unguarded(
            asked, station.declarations, station.why, observing=station.observing
        )
    if attempt is None:
        known = station.journal.declarations
        return await _unguarded(asked, known, NOWHERE, observing=station.observing)
    try:
        await _learned(asked.tool, station)
    except BackstopError as error:
        attempt.refusals.append(f"{asked.tool.name}: {error}")
        known = station.journal.declarations
        return await _unguarded(asked, known, str(error), observing=station.observing)
    call = _set_apart(asked) or _called(asked, station, attempt)
    if isinstance(call, str):
        declared = station.declaration_of(asked.tool.name)
        if declared.effect and not station.observing:
            attempt.refusals.append(call)
        return await _unguarded(asked, {declared.tool: declared}, call, observing=station.observing)
    if call.declaration.effect and not station.observing:
        said = getattr(asked.context, "tool_confirmation", None)
        if said is not None and not said.confirmed:
            return await _declined(call, station)
        if said is not None and await _was_declined(call, station):
            return refused("a person declined it before; to do it all the same, ask anew")
    if not call.declaration.effect:
        return await _read(asked, call, station)
    return await _effect(asked, call, station)


def _called(asked: Asked, station: Station, attempt: Attempt) -> Call | str:
    """The call, with its place free for the key that its tool hands to a provider."""
    capability = station.safety_of(asked.tool.name).capability
    given = asked.args
    if isinstance(capability, Keyed):
        asked.args = {name: value for name, value in given.items() if name != capability.param}
    call = _named(asked.tool, asked.args, asked.context, station, attempt)
    if isinstance(call, str) or not call.declaration.effect:
        asked.args = given  # no key of ours takes its place
    return call


def _set_apart(asked: Asked) -> str | None:
    """What is claimed is what runs: who holds the live arguments changes nothing any more.

    Why not, in words for the agent, where they cannot be copied.
    """
    try:
        asked.args = apart(asked.args)
    except Exception as error:  # noqa: BLE001 - a callback may have put anything there
        return f"its arguments cannot be copied: {type(error).__name__}: {error}"
    return None


async def _unguarded(
    asked: Asked, known: Mapping[str, Declaration], why: str, *, observing: bool
) -> Any:
    """A read goes on without a row; an effect is refused, unless nothing is."""
    declared = known.get(asked.tool.name)
    if observing or (declared is not None and not declared.effect):
        return await asked.run()
    return refused(why)


async def _learned(tool: Any, station: Station) -> None:
    learner = station.learner
    if learner is not None and not learner.knows(tool):
        await off_loop(station.journal.store, partial(learner.learn, tool))


async def _was_declined(call: Call, station: Station) -> bool:
    """Whether a person was asked about this very call, and said no already.

    What is finished may be answered once more, and an older framework would believe that.
    """
    store, run = station.journal.store, call.attempt.run

    def look() -> bool:
        return any(
            isinstance(row, CallBlocked)
            and (row.by, row.call, row.key) == (BY_PERSON, call.id, call.named.key)
            for row in store.read(run)
        )

    try:
        return bool(call.id) and await off_loop(store, look)
    except BackstopError:
        return False  # the claim that follows meets the same store, and says so


async def _declined(call: Call, station: Station) -> Any:
    """A no is no advice: the tool is not asked what it thinks of it."""
    call.attempt.came(call.tool)
    await written(station.journal.store, blocked(call, station.journal, by=BY_PERSON))
    mark(call, REFUSED, fence=0)
    return refused("a person declined it; nothing was done")


async def _effect(asked: Asked, call: Call, station: Station) -> Any:
    context, delta = asked.context, asked.context.actions.state_delta
    call.attempt.came(call.tool)
    before: dict[str, Any] = {}
    flow: dict[str, Any] = {}
    never_began = False

    async def run(key: str) -> Any:
        nonlocal never_began
        before.update(delta)
        flow.update(note(context))
        if key:
            capability = station.safety_of(call.tool).capability
            assert isinstance(capability, Keyed)  # noqa: S101 - for the type checker
            asked.args[capability.param] = key
        function = getattr(asked.tool, "func", None)
        with inside(call), passing(function), watched(asked.tool) as beginning:
            result = await asked.run()
        never_began = beginning.never
        return result

    def keep(result: Any) -> Produced:
        changed = {k: v for k, v in delta.items() if before.get(k, _MISSING) is not v}
        given = produced(result, changed, tool=call.tool, actions=since(flow, context))
        return msgspec.structs.replace(given, turned_away=never_began and given.asked is None)

    try:
        return await station.serve(
            call,
            run,
            keep,
            arguments=asked.args,
            recall=partial(_recall, context),
        )
    except EffectRefused as error:
        mark(call, REFUSED, fence=0)
        return refused(str(error))


def _recall(context: Any, recorded: Recorded) -> None:
    """Do to session and flow what the recorded call did."""
    context.state.update(msgspec.json.decode(recorded.state_delta) or {})
    redo(msgspec.json.decode(recorded.actions) or {}, context)


async def _read(asked: Asked, call: Call, station: Station) -> Any:
    context, delta, journal = asked.context, asked.context.actions.state_delta, station.journal
    before, flow = dict(delta), note(context)
    try:
        with inside(call):
            result = await asked.run()
    except Exception as error:
        await written(journal.store, read_of(call, journal, Produced(), error))
        raise
    changed = {k: v for k, v in delta.items() if before.get(k, _MISSING) is not v}
    try:
        found = produced(result, changed, tool=call.tool, actions=since(flow, context))
    except BackstopError as error:
        # Nothing went out, so nobody need be stopped; a replay has to make do with a stand-in.
        _log.warning("backstop could not record a read of run %s: %s", call.attempt.run, error)
        return result
    await written(journal.store, read_of(call, journal, found))
    return msgspec.json.decode(found.result)


async def tell_unreached(asked: Asked, result: Any, station: Station, attempt: Attempt) -> None:
    """Record a call that did not reach its tool, and what the framework's own tools said."""
    steering = is_control(asked.tool)
    declared = Declaration(tool=asked.tool.name, effect=False) if steering else None
    if not steering:
        try:
            await _learned(asked.tool, station)  # a row may name only what is registered
        except BackstopError as error:
            _log.warning("backstop could not record a call of %s: %s", asked.tool.name, error)
            return
    call = _named(asked.tool, asked.args, asked.context, station, attempt, declared)
    if isinstance(call, str):
        return  # it has no key; had it reached the guard, that would have refused it
    if steering:
        await _steered(station, call, result)
    elif call.declaration.effect:
        attempt.came(call.tool)
        said = getattr(asked.context, "tool_confirmation", None)
        by = BY_AGENT if said is None or said.confirmed else BY_PERSON
        await written(station.journal.store, blocked(call, station.journal, by=by))


async def _steered(station: Station, call: Call, result: Any) -> None:
    try:
        given = produced(result, {}, tool=call.tool)
    except BackstopError:
        given = Produced()  # only a rebuilt conversation would show it
    row = msgspec.structs.replace(read_of(call, station.journal, given), decl="", steering=True)
    await written(station.journal.store, row)


def _named(
    tool: Any,
    args: Mapping[str, Any],
    context: Any,
    station: Station,
    attempt: Attempt,
    declared: Declaration | None = None,
) -> Call | str:
    said = declared_by(getattr(tool, "func", None))
    try:
        arguments = args if said is None else said.keyed(args)
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything
        return f"its key could not be made: {type(error).__name__}: {error}"
    return name_call(
        tool.name,
        arguments,
        declared or station.declaration_of(tool.name),
        attempt=attempt,
        namespace=station.journal.namespace,
        redaction=station.journal.redaction,
        agent=agent_of(context),
        id=context.function_call_id or "",
        within=within(),
        **ids(),
    )
