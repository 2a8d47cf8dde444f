"""A ledger told run by run: what each step was handed, and what its attempts asked and got."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from backstop.core.events import (
    AttemptEnded,
    AttemptStarted,
    CallAnswered,
    CallBlocked,
    CursorAdvanced,
    EffectClaimed,
    Event,
    ModelAnswered,
    RunClosed,
    RunOpened,
    SessionKept,
    StepStarted,
    ToolRead,
)
from backstop.core.history import History, Row, effect_rows
from backstop.errors import LedgerError


@dataclass(slots=True, kw_only=True)
class Step:
    """What a step was handed, and what its attempts asked and were told, in order.

    `answered` are the asks that the guard answered without running the tool. `ended` is how
    the last attempt came out, ``done`` where the cursor moved on, empty where none ended;
    `cut_off` says that the last attempt was killed or raised, wherever the cursor is.
    `kept` are the session's own events of a step that waited for somebody.
    """

    id: str
    cursor: int
    at: str
    trigger: str
    message: msgspec.Raw
    state: msgspec.Raw
    attempts: int = 1
    models: list[tuple[int, ModelAnswered]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    answered: list[tuple[int, CallAnswered]] = field(default_factory=list)
    ended: str = ""
    cut_off: bool = False
    kept: msgspec.Raw | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Read:
    """One recorded call of a read; `index` is its place in the ledger."""

    index: int
    event: ToolRead


Call: TypeAlias = Row | Read


@dataclass(slots=True, kw_only=True)
class RecordedRun:
    """One workflow instance as history holds it; `status` is None while it is open."""

    id: str
    at: str
    app: str
    user: str
    state: msgspec.Raw
    status: str | None = None
    steps: list[Step] = field(default_factory=list)
    versions: set[str] = field(default_factory=set)


def recorded_runs(events: Iterable[Event]) -> tuple[dict[str, RecordedRun], History]:
    """Every run of a ledger with its steps and all that they were answered, and its effects.

    Steps are in order of their cursor; redeliveries and resumes are attempts of one step
    (semantics.md S1). Raises `LedgerError` where a row belongs to no step.
    """
    events = list(events)
    history = effect_rows([events])
    rows = {row.index: row for row in history.rows}
    runs: dict[str, RecordedRun] = {}
    steps: dict[tuple[str, str], Step] = {}
    for index, event in enumerate(events):
        match event:
            case RunOpened():
                runs[event.run] = RecordedRun(
                    id=event.run, at=event.at, app=event.app, user=event.user, state=event.state
                )
            case RunClosed():
                _run_of(runs, event, index).status = event.status
            case StepStarted():
                step = Step(
                    id=event.step,
                    cursor=event.cursor,
                    at=event.at,
                    trigger=event.trigger,
                    message=event.message,
                    state=event.state,
                )
                steps[event.run, event.step] = step
                _run_of(runs, event, index).steps.append(step)
            case (
                AttemptStarted()
                | AttemptEnded()
                | CursorAdvanced()
                | CallAnswered()
                | ModelAnswered()
                | ToolRead()
                | EffectClaimed()
                | CallBlocked()
                | SessionKept()
            ):
                _tell(_step_of(steps, event, index), event, index, rows)
            case _:
                pass
        if event.v and event.run in runs:
            runs[event.run].versions.add(event.v)
    for run in runs.values():
        run.steps.sort(key=lambda step: step.cursor)
    return runs, history


InStep: TypeAlias = (
    AttemptStarted
    | AttemptEnded
    | CursorAdvanced
    | CallAnswered
    | ModelAnswered
    | ToolRead
    | EffectClaimed
    | CallBlocked
    | SessionKept
)


def _tell(step: Step, event: InStep, index: int, rows: Mapping[int, Row]) -> None:
    """Add to `step` what `event` says of it."""
    match event:
        case AttemptStarted():
            step.attempts, step.ended, step.cut_off = event.attempt, "", True
        case AttemptEnded():
            step.ended, step.cut_off = event.outcome, event.outcome == "error"
        case CursorAdvanced():
            step.ended = "done"
        case CallAnswered():
            step.answered.append((index, event))
        case ModelAnswered():
            step.models.append((index, event))
        case ToolRead():
            step.calls.append(Read(index=index, event=event))
        case SessionKept():
            step.kept = event.events
        case _:  # a claim, or a call that was blocked
            if index in rows:  # one that was taken over is no row of its own
                step.calls.append(rows[index])


def _run_of(runs: Mapping[str, RecordedRun], event: Event, index: int) -> RecordedRun:
    if (run := runs.get(event.run)) is None:
        raise LedgerError(
            f"event {index + 1}: run {event.run} was never opened; pull or record it again",
            slug="ledger-lifecycle",
        )
    return run


def _step_of(
    steps: Mapping[tuple[str, str], Step],
    event: InStep,
    index: int,
) -> Step:
    if (step := steps.get((event.run, event.step))) is None:
        raise LedgerError(
            f"event {index + 1}: step {event.step} of run {event.run} was never started; "
            "pull or record it again",
            slug="ledger-lifecycle",
        )
    return step
