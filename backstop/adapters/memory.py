"""A ledger store in memory: the reference for every other store, and good for one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from threading import RLock
from typing import ClassVar, Final

import msgspec

from backstop.adapters.gating import (
    Leased,
    check_lease,
    claimed_override,
    event_of_break,
    gated_ruling,
    in_force,
    leasing,
    released,
    ruled_upon,
)
from backstop.adapters.records import (
    Doubtful,
    Granted,
    Record,
    Ruling,
    check_owner,
    concerns,
    ruling,
    settling,
    standing,
    undecided,
)
from backstop.core.canon import CANON_VERSION
from backstop.core.effectgate import (
    Control,
    Lease,
    Precondition,
    Reach,
    Times,
    broken,
    thawed,
    withheld,
)
from backstop.core.effecttrust import Gated, Ruled, trust_in
from backstop.core.events import (
    FORMAT,
    Checkpointed,
    CursorAdvanced,
    EffectClaimed,
    Event,
    Header,
    once,
)
from backstop.core.header import merged
from backstop.core.lifecycle import Phase, move_of
from backstop.core.sealing import encode
from backstop.core.trustbreak import TrustBreak
from backstop.errors import BackstopError
from backstop.meshports import OutEffect
from backstop.ports import (
    Answer,
    Claim,
    Clock,
    Held,
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


LINES: Final = 1_000_000
"""How many events a store in memory holds, unless it is told otherwise."""


class MemoryStore:
    """A `MeshStore` that forgets at the end of the process.

    `is_alive` tells whether the owner of a claim still runs, None if nobody can see; by default
    owners live as long as the store. One that holds `limit` events forgets none: it begins
    nothing more (``store-full``), and what is under way may still be settled.
    """

    blocking: ClassVar[bool] = False

    def __init__(
        self,
        *,
        clock: Clock,
        is_alive: Callable[[str], bool | None] = lambda _: True,
        header: Header | None = None,
        limit: int = LINES,
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
        self._limit = limit
        self._control = Control()
        self._gated: dict[str, Gated] = {}
        self._leases: dict[str, Leased] = {}

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
            self._check_room()
            if isinstance(event, CursorAdvanced):
                self._check_cursor(event)
            name = once(event)
            if name is not None:
                if (event.run, name) in self._said:
                    return False
                self._said.add((event.run, name))
            self._write(event)
            return True

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        """Take the right to run `intent`, or say why not."""
        with self._lock:
            if precondition is not None:
                now = self._clock.now().astimezone(UTC)
                times = Times(now=now.timestamp(), seen=self._latest.timestamp())
                self._latest = max(self._latest, now)
                fence = self._leased(precondition.lease).fence
                if why := withheld(self._control, precondition, times, fence=fence):
                    return why
            while True:
                ruled, gated = self._ruled(intent, precondition)
                if isinstance(ruled, Granted):
                    self._check_room()
                if gated is not None:
                    self._gated[intent.key] = gated
                match ruled:
                    case Granted(event=event, record=after):
                        self._keep(after, event)
                        return Claim(
                            run=event.run,
                            key=event.key,
                            owner=event.owner,
                            fence=event.fence,
                            override=claimed_override(ruled, intent),
                        )
                    case Doubtful(event=event, record=after):
                        self._keep(after, event)
                    case answer:
                        return answer

    def _ruled(
        self, intent: EffectClaimed, asked: Precondition | None
    ) -> tuple[Ruling, Gated | None]:
        record = self._records.get(intent.key)
        owner = partial(self._owner, record)
        if asked is None:
            return ruling(record, intent, owner=owner, now=self._seconds), None
        gated = self._gated.get(intent.key)
        passed = gated_ruling(
            record, gated, intent, asked, self._control, owner=owner, now=self._seconds
        )
        return passed.ruled, passed.gated

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

    def control(self) -> Control:
        """The control state."""
        return self._control

    def break_trust(self, found: TrustBreak, *, run: str, reach: Sequence[Reach]) -> Control:
        """Put a break on record, freeze what it reaches, and begin an epoch; also in a full store.

        What is bad must be said wherever it can be.
        """
        with self._lock:
            control, one = broken(self._control, found, run=run, reach=reach)
            if control is not self._control:
                self._control = control
                self._write(event_of_break(one))
            return control

    def out(self, run: str | None = None) -> Iterator[OutEffect]:
        """The effects of a run, or of all, that passed the gate, oldest first."""
        with self._lock:
            now, control = self._seconds(), self._control
            found = [(self._records[key], gated) for key, gated in self._gated.items()]
            found.sort(key=lambda pair: pair[0].since)
            return iter(
                [
                    OutEffect(
                        standing=standing(record, owner=self._owner(record), now=now),
                        gated=gated,
                        trust=trust_in(gated, control),
                    )
                    for record, gated in found
                    if run in {None, record.claimed.run}
                ]
            )

    def lease(
        self, run: str, holder: str, *, lease_s: float, held: Lease | None = None
    ) -> Lease | Held:
        """Take the right to recover a run, or go on with the one `held`."""
        with self._lock:
            known = self._leases.get(run, Leased())
            now = max(self._seconds(), self._latest.timestamp())
            after = leasing(known, holder, lease_s=lease_s, held=held, now=now)
            if isinstance(after, Held):
                return after
            self._leases[run] = after
            return Lease(run=run, holder=holder, fence=after.fence)

    def recovering(self, run: str) -> Lease | None:
        """The lease on a run that is in force."""
        with self._lock:
            now = max(self._seconds(), self._latest.timestamp())
            return in_force(self._leases.get(run, Leased()), run, now=now)

    def rule(self, ruled: Sequence[Ruled], *, lease: Lease | None) -> None:
        """Say what becomes of effects in which trust broke: of all of them, or of none."""
        with self._lock:
            if lease is not None:
                check_lease(lease, self._leased(lease).fence)
            self._gated |= {
                one.key: ruled_upon(
                    self._gated.get(one.key), one, self._control, lease=lease is not None
                )
                for one in ruled
            }

    def thaw(self, reach: Sequence[Reach], *, lease: Lease, epoch: int) -> bool:
        """Let go of what was frozen up to `epoch`, unless trust broke since."""
        with self._lock:
            check_lease(lease, self._leased(lease).fence)
            control = thawed(self._control, reach, epoch=epoch)
            self._control = control or self._control
            return control is not None

    def record(self, made: Checkpointed, *, lease: Lease) -> None:
        """Add a checkpoint that was made under a lease, if that is in force."""
        with self._lock:
            check_lease(lease, self._leased(lease).fence)
            self.append(made)

    def release(self, lease: Lease) -> None:
        """Give the right to recover a run back."""
        with self._lock:
            after = released(self._leased(lease), lease)
            if after is not None:
                self._leases[lease.run] = after

    def _leased(self, lease: Lease | None) -> Leased:
        return Leased() if lease is None else self._leases.get(lease.run, Leased())

    def _check_room(self) -> None:
        if len(self._events) >= self._limit:
            raise BackstopError(
                f"memory: holds {self._limit} events, and forgets none of them: nothing more is "
                "begun; use sqlite:/// or firestore://",
                slug="store-full",
            )

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
