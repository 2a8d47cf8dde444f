# ruff: noqa: ANN401 - what a function gives is of any type
"""Calls of plain `@effect` functions: no tool, no framework, only arguments and a body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from backstop.errors import BackstopError
from backstop.guard.calls import Call, inside, name_call, produced, within
from backstop.guard.claims.capability import Keyed
from backstop.guard.claims.desk import Produced
from backstop.guard.claims.offloop import asked
from backstop.guard.effect import Body
from backstop.guard.journal import Attempt
from backstop.guard.plugin.scope import Closed
from backstop.guard.plugin.spans import ids
from backstop.guard.plugin.station import EffectRefused, Station
from backstop.guard.plugin.toolcalls import NOWHERE


def serve_function(
    station: Station | Closed,
    attempt: Attempt | None,
    tool: str,
    arguments: dict[str, Any],
    run: Callable[[], Any],
) -> Any:
    """What the caller of a plain function gets.

    Raises `EffectRefused` where the call cannot be guarded.
    """
    if (learn := _to_learn(station, run)) is not None:
        _learned(tool, learn, attempt)
    call = _named(station, attempt, tool, arguments)
    if call is None or isinstance(station, Closed):
        return run()

    def body(key: str) -> Any:
        with inside(call):
            return _with_key(run, key, station)()

    return station.serve_now(call, body, partial(_kept, tool), arguments=arguments)


async def serve_coroutine(
    station: Station | Closed,
    attempt: Attempt | None,
    tool: str,
    arguments: dict[str, Any],
    run: Callable[[], Awaitable[Any]],
) -> Any:
    """What the caller of a coroutine function gets; raises as `serve_function` does."""
    if (learn := _to_learn(station, run)) is not None and isinstance(station, Station):
        await asked(station.journal.store, partial(_learned, tool, learn, attempt))
    call = _named(station, attempt, tool, arguments)
    if call is None or isinstance(station, Closed):
        return await run()

    async def body(key: str) -> Any:
        with inside(call):
            return await _with_key(run, key, station)()

    return await station.serve(
        call,
        body,
        partial(_kept, tool),
        arguments=arguments,
        recall=lambda _: None,
    )


def _to_learn(station: Station | Closed, run: Callable[[], Any]) -> Callable[[], None] | None:
    """What has to be done before a row may name the function's declaration; None if nothing."""
    learner = None if isinstance(station, Closed) else station.learner
    if learner is None or not isinstance(run, Body) or learner.knows_function(run.declared):
        return None
    return partial(learner.learn_function, run.declared)


def _learned(tool: str, learn: Callable[[], None], attempt: Attempt | None) -> None:
    try:
        learn()
    except BackstopError as error:
        if attempt is not None:
            attempt.refusals.append(f"{tool}: {error}")
        raise EffectRefused(f"{tool} was not run: {error}") from error


def _named(
    station: Station | Closed, attempt: Attempt | None, tool: str, arguments: dict[str, Any]
) -> Call | None:
    """The call with its key; None where it is let through without one.

    Raises `EffectRefused` where it cannot have one.
    """
    why: str | Call
    if isinstance(station, Closed):
        why = station.why
    elif attempt is None:
        why = NOWHERE
    else:
        why = name_call(
            tool,
            arguments,
            station.declaration_of(tool),
            attempt=attempt,
            namespace=station.journal.namespace,
            redaction=station.journal.redaction,
            within=within(),
            **ids(),
        )
    if isinstance(why, Call):
        return why
    if station.observing:
        return None
    if attempt is not None:
        attempt.refusals.append(why)
    raise EffectRefused(f"{tool} was not run: {why}")


def _with_key(run: Callable[[], Any], key: str, station: Station) -> Callable[[], Any]:
    """The body, with the key for a provider in the parameter that takes it."""
    if not key or not isinstance(run, Body):
        return run
    capability = station.safety_of(run.declared.tool).capability
    return run.handed(capability.param, key) if isinstance(capability, Keyed) else run


def _kept(tool: str, result: Any) -> Produced:
    return produced(result, {}, tool=tool)
