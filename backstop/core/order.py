"""The order that a run's events must have: opened, steps by cursor, attempts, closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from backstop.core.events import (
    OBSERVED,
    WITHHELD,
    AttemptEnded,
    AttemptStarted,
    CallAnswered,
    CallBlocked,
    Checkpointed,
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectFenced,
    EffectInDoubt,
    EffectResolved,
    Event,
    ModelAnswered,
    Recovered,
    RunClosed,
    RunOpened,
    SessionKept,
    StepStarted,
    ToolRead,
    TrustBroken,
)

_STATUSES = frozenset({"complete", "failed", "abandoned"})
_OUTCOMES = frozenset({"done", "held", "error"})
_ANSWERS = frozenset({"recorded", "held", "in_doubt", "conflict", WITHHELD})
_ANSWERS |= {f"{OBSERVED}{how}" for how in _ANSWERS}


@dataclass(slots=True)
class _Step:
    cursor: int
    attempts: int = 0
    running: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _Run:
    steps: dict[str, _Step] = field(default_factory=dict)
    done: int = 0


_InStep: TypeAlias = (
    AttemptStarted
    | AttemptEnded
    | CursorAdvanced
    | ModelAnswered
    | ToolRead
    | EffectClaimed
    | CallAnswered
    | CallBlocked
    | SessionKept
)
_Inside: TypeAlias = RunClosed | StepStarted | _InStep


class Order:
    """Checks the order of events, run by run; what it remembers of a run goes when that closes."""

    def __init__(self) -> None:
        self._open: dict[str, _Run] = {}
        self._closed: set[str] = set()

    @property
    def open_runs(self) -> int:
        """How many runs have not been closed."""
        return len(self._open)

    def check(self, event: Event) -> str | None:
        """Take one event into account; say what is out of order, or None."""
        match event:
            case ModelAnswered():
                return self._in_run(event)  # first, for they are the most
            case Checkpointed() | TrustBroken() | Recovered():
                return None  # the mesh judges runs from outside, also closed ones
            case (
                EffectCommitted()
                | EffectFailed()
                | EffectInDoubt()
                | EffectResolved()
                | EffectFenced()
            ):
                # A late owner, or a person, may settle after the run was given up.
                known = event.run in self._open or event.run in self._closed
                return None if known else f"run {event.run!r} was never opened"
            case EffectClaimed(within=effect) if effect and event.run in self._closed:
                return None  # a recovery takes back what the run did: from outside as well
            case RunOpened():
                return self._opened(event.run)
            case _:
                return self._in_run(event)

    def _in_run(self, event: _Inside) -> str | None:
        run = self._open.get(event.run)
        if run is None:
            state = "is closed" if event.run in self._closed else "was never opened"
            return f"run {event.run!r} {state}"
        match event:
            case RunClosed(status=status):
                return self._close(event.run, status)
            case StepStarted():
                return _start(run, event)
            case _:
                return _inside(run, event)

    def _opened(self, run: str) -> str | None:
        if run in self._open or run in self._closed:
            return f"run {run!r} is opened twice"
        self._open[run] = _Run()
        return None

    def _close(self, run: str, status: str) -> str | None:
        if status not in _STATUSES:
            return f"run {run!r} is closed as {status!r}, which is no status"
        del self._open[run]
        self._closed.add(run)
        return None


def _start(run: _Run, event: StepStarted) -> str | None:
    if event.step in run.steps:
        return f"step {event.step!r} starts twice: a further try is an attempt"
    if event.cursor != len(run.steps):
        return (
            f"step {event.step!r} is at cursor {event.cursor}; next in the run is {len(run.steps)}"
        )
    run.steps[event.step] = _Step(cursor=event.cursor)
    return None


def _inside(run: _Run, event: _InStep) -> str | None:
    step = run.steps.get(event.step)
    if step is None:
        return f"step {event.step!r} has not started"
    match event:
        case CursorAdvanced(cursor=cursor):
            if cursor != step.cursor + 1 or cursor <= run.done:
                return f"the cursor goes to {cursor} over step {event.step!r} at {step.cursor}"
            run.done = cursor
            return None
        case AttemptStarted(attempt=attempt):
            if attempt <= step.attempts:
                return f"attempt {attempt} follows attempt {step.attempts}"
            step.attempts = attempt
            step.running.add(attempt)
            return None
        case AttemptEnded(attempt=attempt, outcome=outcome):
            if attempt not in step.running or outcome not in _OUTCOMES:
                return (
                    f"attempt {attempt} ends as {outcome!r} and was not running, or that is no end"
                )
            step.running.discard(attempt)
            return None
        case CallAnswered(how=how) if how not in _ANSWERS:
            return f"a call was answered {how!r}, which the guard never does"
        case _:
            if event.attempt > max(step.attempts, 1) or event.attempt < 1:
                return f"attempt {event.attempt} of step {event.step!r} has not started"
            return None
