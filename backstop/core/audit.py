"""Silent skips: a workflow that says it is done, over an effect that is not.

A run closed as complete, or a cursor that moved past a step, vouches for every effect of the
step. Each must be committed, finally failed, or blocked. One that is absent, only claimed,
failed for now, or in doubt was skipped in silence.

Three things tell which effects a step has: the keys that the cursor names, the rows and
answers of the guard, and, where a guard stood, what the models' recorded answers asked for.
The last is counted by tool over the latest attempt in which a model was asked (semantics.md
A4); calls resumed by later attempts count as its rows. Tools that the header does not declare
as effects are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec

from backstop.core.events import (
    AttemptEnded,
    AttemptStarted,
    CallAnswered,
    CallBlocked,
    CursorAdvanced,
    EffectClaimed,
    Event,
    Header,
    ModelAnswered,
    RunClosed,
    StepStarted,
    ToolRead,
)
from backstop.core.lifecycle import Lives, Phase, decided


class Problem(StrEnum):
    """What is wrong with an effect that a run vouched for."""

    ABSENT = "absent"
    CLAIMED = "claimed only"
    NOT_FINAL = "failed, and not for good"
    IN_DOUBT = "in doubt"
    ASKED = "asked for by the model, and neither run nor answered"


_PROBLEMS: Final = {
    Phase.ABSENT: Problem.ABSENT,
    Phase.CLAIMED: Problem.CLAIMED,
    Phase.EXECUTING: Problem.CLAIMED,
    Phase.RETRYABLE: Problem.NOT_FINAL,
    Phase.REOPENED: Problem.NOT_FINAL,
    Phase.IN_DOUBT: Problem.IN_DOUBT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One effect skipped in silence. `line` is where the run vouched for it, in the file.

    `key` is empty for `Problem.ASKED`, which is about `tool` alone; `tool` is empty where no
    row tells it.
    """

    run: str
    step: str
    tool: str
    key: str
    problem: Problem
    line: int

    def __str__(self) -> str:
        effect = self.tool or "an effect"
        named = f" (key {self.key[:12]})" if self.key else ""
        return f"run {self.run!r}, step {self.step!r}: {effect}{named} is {self.problem.value}"


class _Call(msgspec.Struct):
    name: str = ""


class _Part(msgspec.Struct):
    snake: _Call | None = msgspec.field(name="function_call", default=None)
    camel: _Call | None = msgspec.field(name="functionCall", default=None)


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Response(msgspec.Struct):
    content: _Content | None = None
    partial: bool | None = None


_RESPONSE: Final = msgspec.json.Decoder(_Response)


def calls_of(response: msgspec.Raw) -> Iterator[str]:
    """The tools that a model's answer calls. A partial answer, or an odd one, calls none."""
    try:
        answer = _RESPONSE.decode(response)
    except msgspec.MsgspecError:
        return
    if answer.partial or answer.content is None:
        return
    for part in answer.content.parts or ():
        call = part.snake or part.camel
        if call is not None:
            yield call.name


@dataclass(slots=True)
class _Step:
    cursor: int = 0
    latest: int = 1
    done: int = 0
    claims: dict[str, str] = field(default_factory=dict)
    answers: list[CallAnswered] = field(default_factory=list)
    asked: dict[int, Counter[str]] = field(default_factory=dict)
    rows: dict[int, Counter[str]] = field(default_factory=dict)

    def count(self, attempt: int, tool: str) -> None:
        self.rows.setdefault(attempt, Counter())[tool] += 1

    def unanswered(self) -> Iterator[str]:
        """Tools that the model asked for more often than anything came of it."""
        if not self.asked:
            return
        last = max(self.asked)
        seen: Counter[str] = Counter()
        for attempt, tools in self.rows.items():
            if attempt >= last:
                seen.update(tools)
        yield from sorted((self.asked[last] - seen).elements())

    def vouched(self) -> Iterator[tuple[str, str]]:
        """Key and tool of every effect that passing this step vouches for."""
        yield from self.claims.items()
        decisive = self.done or self.latest
        for answer in self.answers:
            if answer.how == "recorded" or answer.attempt >= decisive:
                yield answer.key, answer.tool


@dataclass(slots=True)
class _Run:
    steps: dict[str, _Step] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)


class Audit:
    """Looks for silent skips event by event; what it remembers of a run goes when that closes.

    `lives` must have followed each event before the audit is fed with it.
    """

    def __init__(self, header: Header, lives: Lives) -> None:
        self._lives = lives
        self._runs: dict[str, _Run] = {}
        self._findings: list[Finding] = []
        self._absent: dict[str, list[Finding]] = {}
        self._effects = _effect_tools(header) if header.guarded else frozenset()

    def feed(self, event: Event, *, line: int) -> None:
        """Take one event into account."""
        match event:
            case StepStarted(step=step, cursor=cursor):
                self._step(event.run, step).cursor = cursor
            case AttemptStarted(step=step, attempt=attempt):
                self._step(event.run, step).latest = attempt
            case AttemptEnded(step=step, attempt=attempt, outcome="done"):
                self._step(event.run, step).done = attempt
            case ModelAnswered():
                self._asked(event)
            case EffectClaimed():
                self._claimed(event)
            case ToolRead(step=step, tool=tool, attempt=attempt):
                if tool in self._effects:
                    self._step(event.run, step).count(attempt, tool)
            case CallAnswered(step=step, tool=tool, attempt=attempt):
                state = self._step(event.run, step)
                state.answers.append(event)
                state.count(attempt, tool)
            case CallBlocked(step=step, key=key, tool=tool, attempt=attempt):
                self._runs.setdefault(event.run, _Run()).blocked.add(key)
                self._step(event.run, step).count(attempt, tool)
            case CursorAdvanced():
                self._advanced(event, line)
            case RunClosed(status=status):
                self._closed(event.run, line, complete=status == "complete")
            case _:
                pass

    def findings(self) -> list[Finding]:
        """All silent skips, in the order of the file, once every event was fed."""
        # A row of another run may stand later in the file than the answer that relies on it.
        absent = (
            found
            for key, waiting in self._absent.items()
            if not decided(self._lives.phase(key))
            for found in waiting
        )
        return sorted([*self._findings, *absent], key=lambda f: (f.line, f.step, f.tool, f.key))

    def _step(self, run: str, step: str) -> _Step:
        if (known := self._runs.get(run)) is None:
            known = self._runs[run] = _Run()
        if (found := known.steps.get(step)) is None:
            found = known.steps[step] = _Step()
        return found

    def _claimed(self, event: EffectClaimed) -> None:
        step = self._step(event.run, event.step)
        step.claims[event.key] = event.tool
        self._runs[event.run].blocked.discard(event.key)  # it is being tried after all
        step.count(event.attempt, event.tool)
        if event.key in self._absent:
            self._late(event.run, event.key)

    def _asked(self, event: ModelAnswered) -> None:
        if not self._effects:
            return
        calls = self._step(event.run, event.step).asked.setdefault(event.attempt, Counter())
        calls.update(name for name in calls_of(event.response) if name in self._effects)

    def _advanced(self, event: CursorAdvanced, line: int) -> None:
        run = self._runs.setdefault(event.run, _Run())
        seen: set[str] = set()
        for name in [name for name, step in run.steps.items() if step.cursor < event.cursor]:
            # Once passed, a step vouches for nothing more: let go of it.
            self._pass(event.run, name, run.steps.pop(name), line, seen)
        self._vouch(event.run, event.step, ((key, "") for key in event.effects), line, seen)

    def _closed(self, name: str, line: int, *, complete: bool) -> None:
        run = self._runs.get(name, _Run())
        seen: set[str] = set()
        for step, state in run.steps.items():
            if complete:
                self._pass(name, step, state, line, seen)
        self._runs.pop(name, None)

    def _pass(self, run: str, name: str, step: _Step, line: int, seen: set[str]) -> None:
        self._vouch(run, name, step.vouched(), line, seen)
        for tool in step.unanswered():
            problem = Problem.ASKED
            self._findings.append(
                Finding(run=run, step=name, tool=tool, key="", problem=problem, line=line)
            )

    def _vouch(
        self, run: str, step: str, effects: Iterable[tuple[str, str]], line: int, seen: set[str]
    ) -> None:
        blocked = self._runs[run].blocked
        for key, tool in effects:
            phase = self._lives.phase(key)
            if key in seen or decided(phase):
                continue
            seen.add(key)
            problem = _PROBLEMS[phase]
            found = Finding(run=run, step=step, tool=tool, key=key, problem=problem, line=line)
            if key in blocked and phase in {Phase.ABSENT, Phase.RETRYABLE}:
                continue  # it did not reach its tool, or that asked a person first
            if phase is not Phase.ABSENT:
                self._findings.append(found)
            else:
                self._absent.setdefault(key, []).append(found)

    def _late(self, run: str, key: str) -> None:
        """A row comes after the answer that relied on it: in the same run, that is too late."""
        waiting = self._absent.pop(key)
        self._findings += [found for found in waiting if found.run == run]
        if others := [found for found in waiting if found.run != run]:
            self._absent[key] = others


def _effect_tools(header: Header) -> frozenset[str]:
    current = ((tool, header.declarations.get(name)) for tool, name in header.tools.items())
    return frozenset(tool for tool, decl in current if decl is not None and decl.effect)


def silent_skips(header: Header, events: Iterable[Event]) -> list[Finding]:
    """All silent skips of a ledger's events; an event's line is its index plus 2.

    Illegal moves of a claim are ignored here: `ledger verify` refuses them on its own.
    """
    lives = Lives(guarded=header.guarded)
    audit = Audit(header, lives)
    for line, event in enumerate(events, start=2):
        lives.follow(event)
        audit.feed(event, line=line)
    return audit.findings()
