"""Writes down what a run is: its steps, their attempts, and whether the cursor may move on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import msgspec

from backstop.core.audit import Finding, silent_skips
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import (
    NOTHING,
    AttemptEnded,
    AttemptStarted,
    CursorAdvanced,
    Event,
    Failure,
    RunClosed,
    RunOpened,
    StepStarted,
)
from backstop.core.lifecycle import decided
from backstop.core.plain import text_of
from backstop.core.redaction import Redaction, RedactionKey
from backstop.errors import BackstopError
from backstop.ports import Records


def raw(value: object) -> msgspec.Raw:
    """`value` as canonical JSON; raises `NotCanonical` for what has no such form."""
    return NOTHING if value is None else msgspec.Raw(text_of(value).encode())


def as_sent(value: object) -> msgspec.Raw:
    """JSON of a message or a model's answer, spelled as it came."""
    return msgspec.Raw(msgspec.json.encode(value))


@dataclass(slots=True, kw_only=True, eq=False)
class Attempt:
    """One try at a step, while it runs.

    `effects` are the keys that it had to do with, each with why it is not decided, or None.
    `session` is that of the runner which the attempt drives; runners nested in it have others.
    `said` are the events of that session, and `waits` says that somebody has to answer one.
    `due` counts, by tool, the effects that a model asked for and that nothing came of yet.
    """

    run: str
    step: str
    cursor: int
    number: int
    effects: dict[str, str | None] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    session: str = ""
    said: list[Any] = field(default_factory=list)
    waits: bool = False
    due: Counter[str] = field(default_factory=Counter)
    refusals: list[str] = field(default_factory=list)

    @property
    def unfinished(self) -> str | None:
        """Why the cursor may not move on; None if it may."""
        undecided = (why for why in self.effects.values() if why is not None)
        never = (f"{tool} was asked for and never ran" for tool, n in self.due.items() if n > 0)
        return next(chain(self.refusals, undecided, never), None)

    def came(self, tool: str) -> None:
        """Something came of an effect that a model may have asked for in this attempt.

        A call that is resumed was asked for in an earlier one, and makes up for none of these.
        """
        if self.due[tool] > 0:
            self.due[tool] -= 1

    def ordinal(self, agent: str) -> int:
        """How many times `agent` asked its model in this attempt before now."""
        ordinal = self.asked.get(agent, 0)
        self.asked[agent] = ordinal + 1
        return ordinal


_CURRENT: Final[ContextVar[Attempt | None]] = ContextVar("backstop_attempt", default=None)


def current() -> Attempt | None:
    """The attempt within which the caller runs, also in tasks and nested runners it started."""
    return _CURRENT.get()


def enter(attempt: Attempt | None) -> None:
    """What this context does from now on belongs to `attempt`; to nobody, if that is None.

    For a driver that is called back and encloses nothing; any other writes `within`.
    """
    _CURRENT.set(attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """Records the runs of one agent into a store, as one process of it.

    `version` is the short digest of the agent's content, `owner` names the process. `ids` tells
    the trace and span of whoever runs, by their members in a row. Without a `redaction_key`,
    calls with values that are declared `redact` cannot be put on record.
    """

    store: Records
    namespace: Namespace
    declarations: Mapping[str, Declaration]
    version: str
    owner: str
    redaction_key: RedactionKey | None = None
    ids: Callable[[], Mapping[str, str]] = dict
    redaction: Redaction = field(init=False)
    """Makes tokens of what is declared, before anything is put on record."""

    def __post_init__(self) -> None:
        made = Redaction(declarations=self.declarations, key=self.redaction_key)
        object.__setattr__(self, "redaction", made)

    def open_run(self, run: str, *, app: str, user: str, state: Mapping[str, Any]) -> None:
        """A workflow instance begins with this session state."""
        self._write(
            RunOpened(run=run, at="", v=self.version, app=app, user=user, state=raw(dict(state)))
        )

    def close_run(self, run: str, *, status: str) -> None:
        """A workflow instance ended: ``complete``, ``failed`` or ``abandoned``."""
        self._write(RunClosed(run=run, at="", v=self.version, status=status))

    def begin(
        self,
        run: str,
        *,
        cursor: int,
        trigger: str,
        message: object,
        state: Mapping[str, Any],
        delivery: str = "",
    ) -> Attempt:
        """Begin a try at the run's step number `cursor`; a redelivery is a further attempt.

        Raises `BackstopError` (``run-closed``) for a run that has ended: whatever is answered
        to it now comes too late.
        """
        step = f"s{cursor}"
        known, tries = self._tries(run, step)
        if not known:
            self.start(run, cursor=cursor, trigger=trigger, message=message, state=state)
        return self.start_attempt(run, cursor=cursor, tries=tries, delivery=delivery)

    def start(
        self,
        run: str,
        *,
        cursor: int,
        trigger: str,
        message: object,
        state: Mapping[str, Any],
        trigger_key: str = "",
    ) -> bool:
        """Say what sets off the run's step number `cursor`; False if it was said before."""
        return self._write(
            StepStarted(
                run=run,
                at="",
                v=self.version,
                step=f"s{cursor}",
                cursor=cursor,
                trigger=trigger,
                message=as_sent(message),
                state=raw(dict(state)),
                trigger_key=trigger_key,
            )
        )

    def start_attempt(self, run: str, *, cursor: int, tries: int, delivery: str = "") -> Attempt:
        """A further try at a step which had `tries`; each of several workers has one of its own."""
        step, number = f"s{cursor}", tries + 1
        while not self._write(
            AttemptStarted(
                run=run, at="", v=self.version, step=step, attempt=number, delivery=delivery
            )
        ):
            number += 1
        return Attempt(run=run, step=step, cursor=cursor, number=number)

    def take_attempt(
        self, run: str, *, cursor: int, number: int, delivery: str, owner: str
    ) -> Attempt | None:
        """The try of this `number` at a step, made by process `owner`; None if it is taken."""
        step = f"s{cursor}"
        taken = self._write(
            AttemptStarted(
                run=run,
                at="",
                v=self.version,
                step=step,
                attempt=number,
                delivery=delivery,
                owner=owner,
            )
        )
        return Attempt(run=run, step=step, cursor=cursor, number=number) if taken else None

    @contextmanager
    def within(self, attempt: Attempt) -> Iterator[Attempt]:
        """What runs in this context, and in tasks that it starts, belongs to `attempt`."""
        token = _CURRENT.set(attempt)
        try:
            yield attempt
        finally:
            _CURRENT.reset(token)

    def end(self, attempt: Attempt, *, outcome: str, error: Exception | None = None) -> None:
        """A try ended: ``done``, ``held`` or ``error``."""
        failure = None if error is None else Failure(type=type(error).__name__, message=str(error))
        self._write(
            AttemptEnded(
                run=attempt.run,
                at="",
                v=self.version,
                step=attempt.step,
                attempt=attempt.number,
                outcome=outcome,
                error=failure,
            )
        )

    def advance(self, attempt: Attempt, *, session: str = "") -> bool:
        """Move the run past the step of `attempt`, vouching for its effects.

        `session` names what the attempt added to the session, where it has one of its own.
        False if another worker moved it already. Raises `BackstopError` (``cursor-held``) over
        an effect that is not decided, by whatever attempt it was made.
        """
        if attempt.unfinished is not None:
            raise BackstopError(
                f"run {attempt.run}, step {attempt.step}: {attempt.unfinished}; the cursor stays "
                "until the effect is committed or has failed for good",
                slug="cursor-held",
            )
        moved = CursorAdvanced(
            run=attempt.run,
            at="",
            v=self.version,
            step=attempt.step,
            cursor=attempt.cursor + 1,
            effects=tuple(attempt.effects),
            session=session,
        )
        # What an earlier attempt left, and this one did not ask for again, is not done either.
        if attempt.number > 1 and (found := self.skipped(moved, self.store.read(attempt.run))):
            raise BackstopError(
                f"{found}; the cursor stays until it is committed or has failed for good",
                slug="cursor-held",
            )
        return self._write(moved)

    def skipped(self, moved: CursorAdvanced, events: Iterable[Event]) -> Finding | None:
        """An effect that `moved` would skip in silence, as the run's `events` tell; None if none.

        What lies in other runs, whose events are not among them, is looked up in the store.
        """
        told = [*events, moved]
        last = len(told) + 1
        for found in silent_skips(self.store.header, told):
            if found.line == last and not (found.key and self._is_decided(found.key)):
                return found
        return None

    def _is_decided(self, key: str) -> bool:
        return any(decided(one.phase) for one in self.store.standings(key))

    def _tries(self, run: str, step: str) -> tuple[bool, int]:
        """Whether the step began before, and how many attempts it has had."""
        known, tries = False, 0
        for event in self.store.read(run):
            if isinstance(event, StepStarted) and event.step == step:
                known = True
            elif isinstance(event, AttemptStarted) and event.step == step:
                tries = event.attempt
            elif isinstance(event, RunClosed):
                raise BackstopError(
                    f"run {run} is closed ({event.status}): nothing of it is begun again; open "
                    "another run",
                    slug="run-closed",
                )
        return known, tries

    def _write(self, event: Event) -> bool:
        if ids := self.ids():
            event = msgspec.structs.replace(event, **ids)
        return self.store.append(event)
