"""Every schedule of a few deliveries of one effect: an explicit search over the states.

Theory of operation: deliveries of one tick take the steps of the protocol one at a time, in
every order. Each may crash between any two steps (its broker delivers again, to a new
incarnation), and a pause is a step that is not taken for long. What a step does to the record
is ruled by `backstop.adapters.records` and `backstop.guard.claims.capability`, so that the search
checks them and no copy. The world knows how often the effect truly happened. A request that
was sent may be lost, or land late, after whoever sent it is gone; it lands within the settle
time, so the clock passes that only when none is on its way.

Searched for are DUP (the effect happened twice), SKIP (somebody moved on, and it has not
happened) and STUCK (no schedule leads to an end any more: all through, or, where nobody could
decide it, the doubt listed).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum, auto
from typing import Final, NamedTuple, TypeAlias

import msgspec

from backstop.adapters.records import (
    Doubtful,
    Granted,
    Record,
    Ruling,
    check_owner,
    ruling,
    settling,
)
from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    EffectInDoubt,
    EffectResolved,
)
from backstop.core.lifecycle import Phase
from backstop.errors import BackstopError
from backstop.guard.claims.capability import (
    Capability,
    DidNotHappen,
    Found,
    Happened,
    Keyed,
    Probe,
    Unknown,
    claimed_with,
    resolution,
)
from backstop.ports import Claim, Held, InDoubt, Liveness, Recorded, Settlement

LEASE_S: Final = 10.0
SETTLE_S: Final = 100.0
LATER: Final = 50.0
"""Every lease is over, and no settle time."""
MUCH_LATER: Final = 1000.0
HIGHEST_FENCE: Final = 7
"""Longer chains of takeovers add nothing new."""

KEY: Final = "k"
PAY: Final = EffectClaimed(
    run="r", at="", step="s", tool="pay", key=KEY, fingerprint="f", lease_s=LEASE_S
)


class At(IntEnum):
    """Where one delivery stands."""

    START = auto()
    LOOKING = auto()
    """In doubt: about to look the effect up."""
    ASKED_NOBODY = auto()
    FOUND_IT = auto()
    FOUND_NOTHING = auto()
    RUNNING = auto()
    """Holds a claim, has done nothing."""
    SENT = auto()
    DONE = auto()
    """The effect happened, and nothing is on record."""
    RAISED = auto()
    THROUGH = auto()
    """Has acknowledged its message: never comes again."""


FOUND: Final[dict[At, Found]] = {
    At.ASKED_NOBODY: Unknown(),
    At.FOUND_IT: Happened(),
    At.FOUND_NOTHING: DidNotHappen(),
}


class Process(NamedTuple):
    """One delivery: where it stands, its claim's fence, the number of the doubt it heard of."""

    at: At = At.START
    fence: int = 0
    doubt: int = 0


START: Final = Process()
THROUGH: Final = Process(At.THROUGH)


class State(NamedTuple):
    """`record` is the number of a known one, 0 for none, and `owner` the process that claimed it.

    Deliveries are alike but for who owns the claim, so they are kept in order.
    """

    record: int
    owner: int
    happened: int
    flying: int
    crashes: int
    processes: tuple[Process, ...]

    def with_process(self, index: int, process: Process) -> State:
        """This state with one process changed, and all in order again."""
        processes = list(self.processes)
        processes[index] = process
        order = sorted(range(len(processes)), key=lambda at: (at != self.owner, processes[at]))
        return self._replace(
            owner=min(0, self.owner),
            processes=tuple(processes[at] for at in order),
        )


GONE: Final = -1
NOBODY: Final = -2
OWNER: Final = "owner"
"""Stands for whoever `State.owner` says: records that differ in names only are one."""


Resolver: TypeAlias = Callable[
    [Capability | None, EffectClaimed, InDoubt, Found], EffectResolved | Held | None
]


def reclaiming(
    _capability: Capability | None, _intent: EffectClaimed, doubt: InDoubt, _found: Found
) -> EffectResolved:
    """The usual design: whoever finds a claim without an owner takes it over."""
    return EffectResolved(run="r", at="", key=KEY, to="reopened", by="lease", fence=doubt.fence + 1)


def hasty(
    capability: Capability | None, intent: EffectClaimed, doubt: InDoubt, found: Found
) -> EffectResolved | Held | None:
    """Ours, but that a lookup's "no" counts at once, whoever still runs."""
    return resolution(capability, intent, replace(doubt, gone=True, age_s=MUCH_LATER), found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What is searched: ours, or a variant that is known to be wrong.

    `sees_owners` is an OS lock; without it only leases tell. `person` is somebody who looks at
    the world and answers truthfully once nothing runs any more. `once_downstream` is a provider
    that acts once. The variants: `claims` is off where deliveries look, run and record;
    `advances_when_blocked` takes "held" for "done"; `resolve` deals otherwise with doubts.
    """

    capability: Capability | None = None
    sees_owners: bool = True
    person: bool = False
    once_downstream: bool = False
    claims: bool = True
    advances_when_blocked: bool = False
    resolve: Resolver = resolution


def never_asked(key: str, arguments: object) -> Found:
    """The search looks at its own world."""
    raise AssertionError(key, arguments)


NONE: Final = Protocol()
PROBE: Final = Protocol(capability=Probe(ask=never_asked, settle_s=SETTLE_S))
KEYED: Final = Protocol(
    capability=Keyed(param="key", retention_s=2 * MUCH_LATER), once_downstream=True
)


@dataclass(slots=True)
class Search:
    """Walks all states that `deliveries` and `crashes` can reach."""

    protocol: Protocol
    deliveries: int
    crashes: int
    records: list[Record | None] = field(default_factory=lambda: [None])
    doubts: list[InDoubt] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    came: dict[State, tuple[State, str] | None] = field(default_factory=dict)
    rulings: dict[tuple[int, Liveness, float], Ruling] = field(default_factory=dict)

    def violations(self) -> dict[str, str]:
        """The first schedule that leads to each kind of violation, among the shortest."""
        found: dict[str, str] = {}
        first = State(0, NOBODY, 0, 0, self.crashes, (START,) * self.deliveries)
        self.came = {first: None}
        before: dict[State, list[State]] = {}
        ends: list[State] = []
        queue = deque([first])
        while queue:
            state = queue.popleft()
            if (kind := self._violation(state)) is not None:
                found.setdefault(kind, self._schedule(state))
            if kind or self._ends(state):
                ends.append(state)
                continue
            for told, after in self._moves(state):
                before.setdefault(after, []).append(state)
                if after not in self.came:
                    self.came[after] = state, told
                    queue.append(after)
        if (stuck := self._stuck(ends, before)) is not None:
            found["STUCK"] = self._schedule(stuck)
        return found

    def _violation(self, state: State) -> str | None:
        if state.happened > 1:
            return "DUP"
        through = THROUGH in state.processes
        return "SKIP" if through and not state.happened and not state.flying else None

    def _ends(self, state: State) -> bool:
        """All are through; or the doubt is listed, and nobody is there who could resolve it."""
        if self._fence(state) > HIGHEST_FENCE:
            return True
        if state.flying:
            return False
        if set(state.processes) == {THROUGH}:
            return True
        record = self.records[state.record]
        listed = record is not None and record.life.phase is Phase.IN_DOUBT
        idle = all(one.at in {At.START, At.THROUGH} for one in state.processes)
        return listed and idle and self._listed_only() and not self.protocol.person

    def _stuck(self, ends: list[State], before: dict[State, list[State]]) -> State | None:
        """A state from which no end can be reached (I6); None if there is none."""
        good, queue = set(ends), deque(ends)
        while queue:
            for state in before.get(queue.popleft(), ()):
                if state not in good:
                    good.add(state)
                    queue.append(state)
        return next((state for state in self.came if state not in good), None)

    def _schedule(self, state: State) -> str:
        steps = []
        while (came := self.came[state]) is not None:
            state, told = came
            steps.append(told)
        return "; ".join(reversed(steps))

    def _fence(self, state: State) -> int:
        record = self.records[state.record]
        return 0 if record is None else record.life.fence

    def _number(self, record: Record) -> int:
        settled = record.settled
        if isinstance(settled, EffectInDoubt):
            settled = msgspec.structs.replace(settled, reason="")
        claimed = msgspec.structs.replace(record.claimed, owner=OWNER)
        record = msgspec.structs.replace(record, claimed=claimed, settled=settled)
        name = msgspec.msgpack.encode(record)
        if name not in self.numbers:
            self.numbers[name] = len(self.records)
            self.records.append(record)
        return self.numbers[name]

    def _noted(self, doubt: InDoubt) -> int:
        if doubt not in self.doubts:
            self.doubts.append(doubt)
        return self.doubts.index(doubt)

    def _moves(self, state: State) -> Iterator[tuple[str, State]]:
        for index, process in enumerate(state.processes):
            for told, after, changed in self._steps(state, index, process):
                yield f"{index} {told}", after.with_process(index, changed)
            if state.crashes and process.at is not At.THROUGH:
                after = state._replace(
                    crashes=state.crashes - 1,
                    flying=state.flying + (process.at is At.SENT),
                    owner=GONE if index == state.owner else state.owner,
                )
                yield f"{index} crashes", after.with_process(index, START)
        if state.flying:
            yield "a late request lands", self._lands(state)._replace(flying=state.flying - 1)
            yield "a request is lost", state._replace(flying=state.flying - 1)
        if self.protocol.person and (said := self._asked(state)) is not None:
            yield said

    def _lands(self, state: State) -> State:
        again = state.happened and self.protocol.once_downstream
        return state if again else state._replace(happened=state.happened + 1)

    def _steps(
        self, state: State, index: int, process: Process
    ) -> Iterator[tuple[str, State, Process]]:
        match process.at:
            case At.START:
                yield from self._claims(state, index, process)
            case At.LOOKING:
                at = At.FOUND_IT if state.happened else At.FOUND_NOTHING
                yield at.name, state, process._replace(at=at)
            case At.ASKED_NOBODY | At.FOUND_IT | At.FOUND_NOTHING:
                yield self._resolves(state, process)
            case At.RUNNING:
                yield "sends", state, process._replace(at=At.SENT)
            case At.SENT:
                yield "acts", self._lands(state), process._replace(at=At.DONE)
                late = state._replace(flying=state.flying + 1)
                yield "gives up waiting", late, process._replace(at=At.RAISED)
            case At.DONE:
                done = EffectCommitted(run="r", at="", key=KEY, fence=process.fence)
                yield self._settles(state, index, process, done)
            case At.RAISED:
                doubt = EffectInDoubt(run="r", at="", key=KEY, fence=process.fence, reason="")
                yield self._settles(state, index, process, doubt)
            case At.THROUGH:
                pass

    def _claims(
        self, state: State, index: int, process: Process
    ) -> Iterator[tuple[str, State, Process]]:
        if not self.protocol.claims:
            yield "looks", state, THROUGH if state.record else Process(At.RUNNING)
            return
        match self._ruled(state):
            case Granted(event=event, record=record):
                after = state._replace(record=self._number(record), owner=index)
                yield "claims", after, Process(At.RUNNING, event.fence)
            case Doubtful(record=record):
                yield "doubts", state._replace(record=self._number(record)), process
            case Recorded():
                yield "is through", state, THROUGH
            case Held() | InDoubt() if self.protocol.advances_when_blocked:
                yield "moves on", state, THROUGH
            case InDoubt() if self._listed_only():
                pass  # it is delivered again later
            case InDoubt() as doubt:
                looks = isinstance(self.protocol.capability, Probe)
                at = At.LOOKING if looks else At.ASKED_NOBODY
                yield "hears of a doubt", state, Process(at, doubt=self._noted(doubt))
            case _:
                pass  # held: it is delivered again later

    def _listed_only(self) -> bool:
        return self.protocol.capability is None and self.protocol.resolve is resolution

    def _ruled(self, state: State) -> Ruling:
        now = LATER if state.flying else MUCH_LATER
        seen = self._liveness(state)
        name = (state.record, seen, now)
        if name not in self.rulings:
            intent = claimed_with(PAY, self.protocol.capability)
            record = self.records[state.record]
            self.rulings[name] = ruling(record, intent, owner=lambda: seen, now=lambda: now)
        return self.rulings[name]

    def _liveness(self, state: State) -> Liveness:
        if not self.protocol.sees_owners:
            return Liveness.UNKNOWN
        return Liveness.GONE if state.owner == GONE else Liveness.ALIVE

    def _resolves(self, state: State, process: Process) -> tuple[str, State, Process]:
        capability = self.protocol.capability
        said = self.protocol.resolve(
            capability,
            claimed_with(PAY, capability),
            self.doubts[process.doubt],
            FOUND[process.at],
        )
        if not isinstance(said, EffectResolved):
            return "waits", state, START
        try:
            record = settling(self.records[state.record], said)
        except BackstopError:
            return "resolves too late", state, START
        return f"resolves as {said.to}", state._replace(record=self._number(record)), START

    def _settles(
        self, state: State, index: int, process: Process, settlement: Settlement
    ) -> tuple[str, State, Process]:
        record = self.records[state.record]
        if not self.protocol.claims:
            return "records", state._replace(record=self._number(Record(claimed=PAY))), THROUGH
        owner = OWNER if index == state.owner else "another"
        claim = Claim(run="r", key=KEY, owner=owner, fence=process.fence)
        try:
            check_owner(record, settlement, claim)
            after = self._number(settling(record, settlement))
        except BackstopError:
            return "settles too late", state, START
        if isinstance(settlement, EffectCommitted):
            return "commits", state._replace(record=after), THROUGH
        return "puts in doubt", state._replace(record=after), START

    def _asked(self, state: State) -> tuple[str, State] | None:
        """A person looks, once whoever ran it is through with it and nothing is on its way."""
        record = self.records[state.record]
        if record is None or record.life.phase is not Phase.IN_DOUBT or state.flying:
            return None
        if any(one.at in {At.RUNNING, At.SENT, At.DONE} for one in state.processes):
            return None
        to = "committed" if state.happened else "reopened"
        fence = record.life.fence + (to == "reopened")
        said = EffectResolved(run="r", at="", key=KEY, to=to, by="ada", fence=fence)
        after = state._replace(record=self._number(settling(record, said)))
        return f"a person says {to}", after
