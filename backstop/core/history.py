"""A ledger told as history: which effects went out.

`effect_rows` is all that the gate needs and reads nothing else (`backstop.core.runs` tells
everything, for a replay). It takes events in ledger order, in batches, so that a ledger need
not be held whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec

from backstop.core.events import (
    BY_AGENT,
    NOTHING,
    CallAnswered,
    CallBlocked,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Event,
    Failure,
    RunClosed,
    RunOpened,
    StepStarted,
)
from backstop.errors import LedgerError


class Outcome(StrEnum):
    """How a claimed effect stands at the end of the record."""

    COMMITTED = "committed"
    FAILED = "failed"
    IN_DOUBT = "in_doubt"
    OPEN = "open"
    BLOCKED = "blocked"


class Row(msgspec.Struct, kw_only=True, eq=False):
    """One call of an effect that history holds; `index` is its claim's place in the ledger.

    `cursor` is its step's place in the run. `guarded` says that a guard wrote it. `settled` is
    the place of what settled it last, `within` the key of the call in whose body it was made.
    `decided` says that a person or a lookup settled it: nothing was raised.
    Compared by identity: two rows of equal content are two rows.
    """

    index: int
    run: str
    step: str
    cursor: int
    tool: str
    key: str
    fingerprint: str
    args: msgspec.Raw
    outcome: Outcome
    decl: str = ""
    v: str = ""
    guarded: bool = False
    fence: int = 1
    attempt: int = 1
    agent: str = ""
    call: str = ""
    at: str = ""
    settled_at: str = ""
    result: msgspec.Raw = NOTHING
    error: Failure | None = None
    state_delta: msgspec.Raw = NOTHING
    actions: msgspec.Raw = NOTHING
    within: str = ""
    settled: int | None = None
    decided: bool = False

    @property
    def is_in_doubt(self) -> bool:
        """May it be out, without anybody knowing?"""
        return self.outcome is Outcome.IN_DOUBT or self.outcome is Outcome.OPEN

    @property
    def may_be_out(self) -> bool:
        """Does it match and pair like a committed one (semantics.md G2)?"""
        return self.outcome is Outcome.COMMITTED or self.is_in_doubt


@dataclass(slots=True, kw_only=True)
class History:
    """The effects of a ledger, and which runs it holds; `open` are the runs not closed.

    `answered` are the asks that the guard answered without running the tool.
    """

    rows: list[Row] = field(default_factory=list)
    answered: list[CallAnswered] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    events: int = 0

    @property
    def committed(self) -> int:
        """How many side effects went out."""
        return sum(row.outcome is Outcome.COMMITTED for row in self.rows)


class StepPlace(msgspec.Struct, frozen=True, tag_field="t", tag="step_started", gc=False):
    """As much of `StepStarted` as a row needs: reading no more of it saves a twentieth."""

    run: str
    step: str
    cursor: int


class _Effects:
    """Builds rows from claims and what settled them."""

    def __init__(self) -> None:
        self.history = History()
        self._cursors: dict[tuple[str, str], int] = {}
        self._unsettled: dict[tuple[str, str], list[Row]] = {}

    def feed(self, events: Sequence[Event]) -> None:
        start = self.history.events
        for index, event in enumerate(events, start):
            if type(event) in _HANDLERS:  # most are no effects
                _HANDLERS[type(event)](self, event, index)
        self.history.events = start + len(events)

    def opened(self, event: RunOpened, _: int) -> None:
        self.history.runs.append(event.run)
        self.history.open.add(event.run)

    def closed(self, event: RunClosed, _: int) -> None:
        self.history.open.discard(event.run)

    def stepped(self, event: StepStarted | StepPlace, _: int) -> None:
        self._cursors[event.run, event.step] = event.cursor

    def claimed(self, event: EffectClaimed, index: int) -> None:
        row = self._row(event, index, Outcome.OPEN, guarded=bool(event.owner), fence=event.fence)
        waiting = self._unsettled.setdefault((event.run, event.key), [])
        if row.guarded and waiting and waiting[-1].fence < row.fence:
            # One record per key: a claim at a higher fence takes the older one over.
            self.history.rows.remove(waiting.pop())
        waiting.append(row)
        self.history.rows.append(row)

    def answered(self, event: CallAnswered, _: int) -> None:
        self.history.answered.append(event)

    def blocked(self, event: CallBlocked, index: int) -> None:
        if event.by == BY_AGENT:
            return  # what another version asks there is not blocked: nothing stands for it
        self.history.rows.append(self._row(event, index, Outcome.BLOCKED, guarded=True, fence=0))

    def _row(
        self,
        event: EffectClaimed | CallBlocked,
        index: int,
        outcome: Outcome,
        *,
        guarded: bool,
        fence: int,
    ) -> Row:
        return Row(
            index=index,
            run=event.run,
            step=event.step,
            cursor=self._cursors.get((event.run, event.step), 0),
            tool=event.tool,
            key=event.key,
            fingerprint=event.fingerprint,
            args=event.args,
            outcome=outcome,
            decl=event.decl,
            v=event.v,
            guarded=guarded,
            fence=fence,
            attempt=event.attempt,
            agent=event.agent,
            call=event.call,
            at=event.at,
            within=event.within if isinstance(event, EffectClaimed) else "",
        )

    def _settle(
        self, event: EffectCommitted | EffectFailed | EffectInDoubt | EffectResolved, index: int
    ) -> Row:
        """The row that `event` settles: the oldest unsettled claim of its key and fence.

        To reopen an effect raises its fence: the claim is one of a lower fence then.
        """
        reopens = isinstance(event, EffectResolved) and event.to == "reopened"
        for row in self._unsettled.get((event.run, event.key), ()):
            if row.fence == event.fence or (reopens and row.fence < event.fence):
                row.settled, row.settled_at = index, event.at
                return row
        raise LedgerError(
            f"event {index + 1}: {event.key[:12]}… in run {event.run} is settled but was never "
            "claimed; pull or record the ledger again",
            slug="ledger-lifecycle",
        )

    def _done(self, row: Row, outcome: Outcome) -> None:
        row.outcome = outcome
        self._unsettled[row.run, row.key].remove(row)

    def committed(self, event: EffectCommitted, index: int) -> None:
        row = self._settle(event, index)
        row.result, row.state_delta, row.error = event.result, event.state_delta, None
        row.actions = event.actions
        self._done(row, Outcome.COMMITTED)

    def failed(self, event: EffectFailed, index: int) -> None:
        row = self._settle(event, index)
        row.error, row.result = event.error, event.result
        row.state_delta, row.actions = event.state_delta, event.actions
        self._done(row, Outcome.FAILED)

    def doubted(self, event: EffectInDoubt, index: int) -> None:
        # Stays unsettled: the late owner, a probe or a person may still say what happened.
        row = self._settle(event, index)
        row.outcome = Outcome.IN_DOUBT
        row.error = Failure(type="InDoubt", message=event.reason)

    def resolved(self, event: EffectResolved, index: int) -> None:
        row = self._settle(event, index)
        row.decided = True
        match event.to:
            case "committed":
                row.result, row.error = event.result, None
                self._done(row, Outcome.COMMITTED)
            case "failed":
                row.error = Failure(type="Resolved", message=event.reason)
                self._done(row, Outcome.FAILED)
            case _:
                # Reopened: it may be out all the same, so the row stays in doubt.
                self._done(row, Outcome.IN_DOUBT)


# Functions, not methods bound to an instance: a builder that held its own methods would be a
# cycle, and the ledger's bytes would stay until the collector came by.
_HANDLERS: Final[Mapping[type[msgspec.Struct], Callable[..., None]]] = {
    RunOpened: _Effects.opened,
    RunClosed: _Effects.closed,
    StepStarted: _Effects.stepped,
    StepPlace: _Effects.stepped,
    EffectClaimed: _Effects.claimed,
    EffectCommitted: _Effects.committed,
    EffectFailed: _Effects.failed,
    EffectInDoubt: _Effects.doubted,
    EffectResolved: _Effects.resolved,
    CallAnswered: _Effects.answered,
    CallBlocked: _Effects.blocked,
}

EFFECT_KINDS: Final = tuple(kind for kind in _HANDLERS if kind is not StepStarted)
"""The events that `effect_rows` looks at, one kind for each tag."""


def effect_rows(batches: Iterable[Sequence[Event]]) -> History:
    """The effects of a ledger's events, in order of their claims.

    Raises `LedgerError` (``ledger-lifecycle``) where an effect is settled that was never
    claimed.
    """
    effects = _Effects()
    for batch in batches:
        effects.feed(batch)
    return effects.history
