"""A ledger store in memory: the reference for every other store, and good for one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from threading import RLock
from typing import ClassVar, Final

import msgspec

from backstop.adapters.records import (
    Doubtful,
    Granted,
    Record,
    check_owner,
    concerns,
    ruling,
    settling,
    standing,
    undecided,
)
from backstop.core.canon import CANON_VERSION
from backstop.core.events import (
    FORMAT,
    CursorAdvanced,
    EffectClaimed,
    Event,
    Header,
    once,
)
from backstop.core.header import merged
from backstop.core.lifecycle import Phase, move_of
from backstop.core.sealing import encode
from backstop.errors import BackstopError
from backstop.ports import (
    Answer,
    Claim,
    Clock,
    Liveness,
    Settlement,
    Stamped,
    Standing,
)


def timestamp(instant: datetime) -> str:
    """RFC 3339 text in UTC, with milliseconds and a trailing ``Z``."""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


SEEN: Final[Mapping[bool | None, Liveness]] = {
    True: Liveness.ALIVE,
    False: Liveness.GONE,
    None: Liveness.UNKNOWN,
}
"""What it means of an owner to be alive, not alive, or out of sight."""


class MemoryStore:
    """A `LedgerStore` that forgets at the end of the process.

    `is_alive` tells whether the owner of a claim still runs, None if nobody can see; by default
    owners live as long as the store.
    """

    blocking: ClassVar[bool] = False

    def __init__(
        self,
        *,
        clock: Clock,
        is_alive: Callable[[str], bool | None] = lambda _: True,
        header: Header | None = None,
    ) -> None:
        self.header = header or Header(format=FORMAT, agent="", canon=CANON_VERSION)
        self._clock = clock
        self._is_alive = is_alive
        self._events: list[Event] = []
        self._said: set[tuple[str, str]] = set()
        self._records: dict[str, Record] = {}
        self._claimed_in: dict[tuple[str, str], dict[str, None]] = {}
        self._latest = datetime.min.replace(tzinfo=UTC)
        self._lock = RLock()

    def register(self, header: Header) -> None:
        """Take in what a process that is going to write knows about its tools."""
        with self._lock:
            self.header = merged(self.header, header)

    def append(self, event: Event) -> bool:
        """Add a fact that is not about an effect's record, once."""
        if move_of(event) is not None:
            raise BackstopError(
                f"{type(event).__name__} cannot be appended: claim or settle the effect",
                slug="illegal-move",
            )
        with self._lock:
            if isinstance(event, CursorAdvanced):
                self._check_cursor(event)
            name = once(event)
            if name is not None:
                if (event.run, name) in self._said:
                    return False
                self._said.add((event.run, name))
            self._write(event)
            return True

    def claim(self, intent: EffectClaimed) -> Claim | Answer:
        """Take the right to run `intent`, or say why not."""
        with self._lock:
            while True:
                record = self._records.get(intent.key)
                ruled = ruling(
                    record, intent, owner=partial(self._owner, record), now=self._seconds
                )
                match ruled:
                    case Granted(event=event, record=after):
                        self._keep(after, event)
                        return Claim(
                            run=event.run, key=event.key, owner=event.owner, fence=event.fence
                        )
                    case Doubtful(event=event, record=after):
                        self._keep(after, event)
                    case answer:
                        return answer

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        """Say what became of an effect."""
        with self._lock:
            record = self._records.get(settlement.key)
            check_owner(record, settlement, claim)
            self._keep(settling(record, settlement), settlement)

    def read(self, run: str | None = None) -> Iterator[Event]:
        """The events of one run, or of all, in the order in which they happened."""
        with self._lock:
            events = tuple(self._events)
        return (event for event in events if run is None or event.run == run)

    def standings(self, key: str | None = None) -> Iterator[Standing]:
        """Every effect that is not decided, oldest first; or that of `key`, decided or not."""
        with self._lock:
            records = sorted(self._records.values(), key=lambda record: record.since)
        return (
            standing(record, owner=self._owner(record), now=self._seconds())
            for record in records
            if concerns(record, key)
        )

    def parts(self, at: datetime) -> Sequence[str]:  # noqa: ARG002 - there is one, at any time
        """One part: all of it."""
        return ("all",)

    def pull(self, part: str, *, at: datetime) -> Iterator[Stamped]:  # noqa: ARG002 - the only one
        """The events up to `at`."""
        last = timestamp(at)
        for number, event in enumerate(self.read()):
            if event.at <= last:
                yield Stamped(stamp=number, tie="", line=encode(event))

    def _owner(self, record: Record | None) -> Liveness:
        alive = record is not None and self._is_alive(record.claimed.owner)
        return SEEN[alive]

    def _seconds(self) -> float:
        return self._clock.now().timestamp()

    def _check_cursor(self, event: CursorAdvanced) -> None:
        def phase(key: str) -> Phase:
            record = self._records.get(key)
            return Phase.ABSENT if record is None else record.life.phase

        step = event.run, event.step
        claimed = ((key, self._records[key]) for key in self._claimed_in.get(step, ()))
        of_step = [
            (key, record.life.phase)
            for key, record in claimed
            if (record.claimed.run, record.claimed.step) == step  # not claimed anew elsewhere
        ]
        undecided(event, of_step, [(key, phase(key)) for key in event.effects])

    def _keep(self, record: Record, event: EffectClaimed | Settlement) -> None:
        record.moved = self._write(event).timestamp()
        record.since = record.since or record.moved
        self._records[event.key] = record
        if isinstance(event, EffectClaimed):
            self._claimed_in.setdefault((event.run, event.step), {})[event.key] = None

    def _write(self, event: Event) -> datetime:
        # A clock that is put back does not put events back.
        now = self._latest = max(self._latest, self._clock.now().astimezone(UTC))
        self._events.append(msgspec.structs.replace(event, at=timestamp(now)))
        return now
