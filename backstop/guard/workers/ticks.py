"""The message that sets off a step: its form, and where in its run it belongs.

A message says which run it is for, and which step it sets off: by the step's number
(`cursor`), or by a name that its publisher gave to what happened (`trigger_key`) where that
does not know the number. Neither its id nor its content tells one step from another (S1): a
tick may be published three times, and two weekly ticks look alike.

- `run`: the run's id.
- `cursor` or `trigger_key`: the step, by its number from 0 or by its name; one of the two.
- `trigger`: what set it off; ``tick`` where nothing is said.
- `content_type`: of the data; ``text/plain`` where nothing is said, or ``application/json``
  for a content of the framework, parts and all.
- `user`, `state`: open the run if it is new; the session's state is a JSON object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

from backstop.core.events import (
    AttemptEnded,
    AttemptStarted,
    CursorAdvanced,
    Event,
    RunClosed,
    RunOpened,
    StepStarted,
)
from backstop.errors import BackstopError
from backstop.ports import Delivery

_LONGEST: Final = 1500
"""Characters of a name: a document of a store has an id of as many bytes at most."""

_MOST_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What a message asks for. `cursor` is None where `trigger_key` names the step."""

    run: str
    cursor: int | None
    trigger_key: str
    trigger: str
    content: Any
    user: str = ""
    state: Mapping[str, Any] | None = None
    delivery: str = ""


def parse_tick(delivery: Delivery) -> Tick:
    """The message, understood. Raises `BackstopError` (``tick``) for one that says too little."""
    said = delivery.attributes
    run, key, cursor = said.get("run", ""), said.get("trigger_key", ""), said.get("cursor")
    if not run or len(run) > _LONGEST or "/" in run:
        raise _bad(delivery, "`run` must name a run, without a slash")
    if (cursor is None) == (not key):
        raise _bad(delivery, "it must say either `cursor` or `trigger_key`")
    if cursor is not None and not (
        cursor.isascii() and cursor.isdecimal() and len(cursor) <= _MOST_DIGITS
    ):
        raise _bad(delivery, f"`cursor` is {cursor[:20]!r}, which is no number of a step")
    state = _state(delivery)
    if state is not None and not said.get("user"):
        raise _bad(delivery, "with `state` goes a `user`")
    return Tick(
        run=run,
        cursor=None if cursor is None else int(cursor),
        trigger_key=key,
        trigger=said.get("trigger", "tick"),
        content=_content(delivery),
        user=said.get("user", ""),
        state=state,
        delivery=delivery.id,
    )


def _state(delivery: Delivery) -> dict[str, Any] | None:
    text = delivery.attributes.get("state")
    try:
        return None if text is None else msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _bad(delivery, f"`state` is no JSON object: {error}") from error


def _content(delivery: Delivery) -> dict[str, Any]:
    kind = delivery.attributes.get("content_type", "text/plain")
    try:
        if kind == "text/plain":
            return {"role": "user", "parts": [{"text": delivery.data.decode()}]}
        if kind == "application/json":
            return msgspec.json.decode(delivery.data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _bad(delivery, f"its data is no {kind}: {error}") from error
    raise _bad(delivery, f"`content_type` is {kind[:40]!r}: write text/plain or application/json")


def _bad(delivery: Delivery, why: str) -> BackstopError:
    return BackstopError(f"message {delivery.id[:40]} cannot be understood: {why}", slug="tick")


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How far a run has come: `cursor` steps are behind, `links` name what each of them left.

    `steps` are those that have begun, by number. By step, `tries` is the last attempt's number,
    and `open` are the attempts that have not ended.
    """

    opened: RunOpened | None = None
    cursor: int = 0
    links: tuple[str, ...] = ()
    steps: Mapping[int, StepStarted] = field(default_factory=dict)
    tries: Mapping[str, int] = field(default_factory=dict)
    open: Mapping[str, Mapping[int, AttemptStarted]] = field(default_factory=dict)
    closed: bool = False


def course(events: Iterable[Event]) -> Course:
    """How far the run of these events has come."""
    opened, closed = None, False
    links: dict[int, str] = {}
    steps: dict[int, StepStarted] = {}
    tries: dict[str, int] = {}
    running: dict[str, dict[int, AttemptStarted]] = {}
    for event in events:
        match event:
            case RunOpened():
                opened = event
            case RunClosed():
                closed = True
            case StepStarted(cursor=number):
                steps[number] = event
            case AttemptStarted(step=step, attempt=attempt):
                tries[step] = max(attempt, tries.get(step, 0))
                running.setdefault(step, {})[attempt] = event
            case AttemptEnded(step=step, attempt=attempt):
                running.get(step, {}).pop(attempt, None)
            case CursorAdvanced(cursor=number, session=session):
                links[number] = session
            case _:
                pass
    return Course(
        opened=opened,
        cursor=max(links, default=0),
        links=tuple(links[number] for number in sorted(links)),
        steps=steps,
        tries=tries,
        open=running,
        closed=closed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """The step is done: nothing is left to do for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """The step's turn has not come, or will not come like this."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """It is the step's turn."""

    cursor: int


Due: TypeAlias = Behind | NotYet | Turn


def due(tick: Tick, run: Course) -> Due:
    """Where the step stands that a message sets off (S1: by number or name alone)."""
    cursor = _number(tick, run)
    if cursor is None:  # a name that was not heard before
        if run.cursor in run.steps:
            return NotYet(reason=f"step s{run.cursor} is under way, and it is another one")
        cursor = run.cursor
    begun = run.steps.get(cursor)
    if begun is not None and begun.trigger_key != tick.trigger_key:
        theirs = begun.trigger_key or "its number"
        return NotYet(
            reason=f"step s{cursor} is known by {theirs}: publish a run's steps by number or by "
            "name, not by both"
        )
    if cursor < run.cursor:
        return Behind()
    if run.closed:
        return NotYet(reason="the run is closed, and this step of it was never done")
    if cursor > run.cursor:
        return NotYet(reason=f"the run is at step s{run.cursor}")
    return Turn(cursor=cursor)


def _number(tick: Tick, run: Course) -> int | None:
    if tick.cursor is not None:
        return tick.cursor
    return next(
        (at for at, step in run.steps.items() if step.trigger_key == tick.trigger_key), None
    )
