"""What a ledger says of the mesh: checkpoints, trust breaks, and what recoveries did, in order.

Nothing that cannot be read is passed over: a step whose record is torn or names another step
stands there with a form that nobody trusts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypeAlias, TypeVar

import msgspec

from backstop.core.checkpoint import NO_USAGE, Checkpoint, StepKind, Usage
from backstop.core.effectgate import Break, Control, Reach, thawed
from backstop.core.events import Checkpointed, Event, Recovered, TrustBroken
from backstop.core.trustbreak import TrustBreak
from backstop.core.trustgraph import TrustGraph
from backstop.errors import BackstopError

T = TypeVar("T")

TORN: Final = -1
"""Schema of a record that cannot be read; none is written with it."""


class Rerun(msgspec.Struct, frozen=True, kw_only=True, tag="rerun"):
    """A recovery is about to run a step again, on these inputs (a digest), in this epoch."""

    step: str
    given: str
    epoch: int
    holder: str


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """A recovery came to its end: what it let go, what it cost, and why it stopped, if it did."""

    epoch: int
    holder: str
    thawed: tuple[Reach, ...] = ()
    rerun: tuple[str, ...] = ()
    spent: Usage = NO_USAGE
    avoided: Usage = NO_USAGE
    stopped: str = ""


Note: TypeAlias = Rerun | Ended
_NOTE: Final[msgspec.json.Decoder[Note]] = msgspec.json.Decoder(Rerun | Ended)
_CHECKPOINT: Final = msgspec.json.Decoder(Checkpoint)
_BREAK: Final = msgspec.json.Decoder(Break)


@dataclass(slots=True, kw_only=True)
class RunLog:
    """One run: its records in the order of the ledger, each with its place, and the notes."""

    records: list[Checkpoint] = field(default_factory=list)
    notes: list[tuple[int, Note]] = field(default_factory=list)

    def graph(self) -> TrustGraph:
        """The current record of each step."""
        graph = TrustGraph()
        for record in self.records:
            graph.put(record)
        return graph

    def tries(self, step: str, given: str) -> int:
        """How often recoveries ran a step again on these inputs, however that ended."""
        return sum(
            isinstance(note, Rerun) and (note.step, note.given) == (step, given)
            for _, note in self.notes
        )


@dataclass(slots=True, kw_only=True)
class MeshLog:
    """A whole ledger. `places` are those of the breaks, by their ids; `latest` its last time."""

    runs: dict[str, RunLog] = field(default_factory=dict)
    breaks: list[tuple[Break | None, Note | None]] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    size: int = 0
    latest: str = ""

    @classmethod
    def of(cls, events: Iterable[Event]) -> MeshLog:
        """What these events say. Raises `BackstopError` (``mesh-record``)."""
        log = cls()
        for event in events:
            log.take(event)
        return log

    def take(self, event: Event) -> None:
        """One event more. Raises `BackstopError` (``mesh-record``)."""
        self.size += 1
        self.latest = max(self.latest, event.at)
        match event:
            case Checkpointed():
                self._run(event.run).records.append(_record(event, self.size))
            case TrustBroken():
                one: Break = _read(_BREAK, event)
                self.breaks.append((one, None))
                self.places.setdefault(one.broken.id, self.size)
            case Recovered():
                note: Note = _read(_NOTE, event)
                self._run(event.run).notes.append((self.size, note))
                if isinstance(note, Ended):
                    self.breaks.append((None, note))
            case _:
                pass

    @property
    def high_water(self) -> float:
        """The latest time that the ledger tells of, in Unix seconds; 0 where it tells of none."""
        try:
            return datetime.fromisoformat(self.latest).astimezone(UTC).timestamp()
        except (ValueError, OverflowError):
            return 0.0

    def control(self) -> Control:
        """The control state as far as a ledger alone tells of it: its breaks, and what was let go.

        A store knows its own, which counts.
        """
        control = Control()
        for one, note in self.breaks:
            if one is not None and control.known(one.broken.id) is None:
                control = Control(
                    epoch=max(control.epoch, one.broken.epoch), breaks=(*control.breaks, one)
                )
            elif isinstance(note, Ended):
                control = thawed(control, note.thawed, epoch=note.epoch) or control
        return control

    def broken(self, control: Control, run: str) -> tuple[TrustBreak, ...]:
        """The breaks that concern a run, at their places in this ledger.

        One whose event is not here stands behind all that is: it names the more. One that only
        the ledger tells of counts as well: a control state that lost it is no reason to trust.
        """
        lost = [one for one in self.control().breaks if control.known(one.broken.id) is None]
        return tuple(
            msgspec.structs.replace(one.broken, seq=self.places.get(one.broken.id, self.size + 1))
            for one in (*control.breaks, *lost)
            if one.run in {"", run}
        )

    def _run(self, run: str) -> RunLog:
        return self.runs.setdefault(run, RunLog())


def _record(event: Checkpointed, place: int) -> Checkpoint:
    try:
        found = _CHECKPOINT.decode(event.body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        found = None
    if found is None or (found.run, found.step) != (event.run, event.step):
        return Checkpoint(
            run=event.run,
            step=event.step,
            kind=StepKind.JOIN,
            output="",
            producer="",
            observed_at=0.0,
            gen=2**62,  # nothing that is delivered later takes its place
            seq=place,
            schema=TORN,
        )
    return msgspec.structs.replace(found, seq=place)


def _read(decoder: msgspec.json.Decoder[T], event: TrustBroken | Recovered) -> T:
    try:
        return decoder.decode(event.body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BackstopError(
            f"run {event.run}: what is on record of a trust break or a recovery at {event.at} "
            f"cannot be read ({error}): nobody can say what is trusted; restore the ledger",
            slug="mesh-record",
        ) from error
