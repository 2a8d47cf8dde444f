"""A world of workers, effects and a person, in which every law of the guard can be broken.

A worker is `perform` driven by hand: it stands still before its effect, after it, and within
its lookup, until somebody takes the next step. So one thread has every schedule.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from backstop.adapters.memory import MemoryStore
from backstop.core.effectgate import Precondition
from backstop.core.events import EffectClaimed, EffectResolved, Event, Header
from backstop.core.lifecycle import Phase
from backstop.guard.claims.capability import (
    Capability,
    DidNotHappen,
    Found,
    Happened,
    downstream_key,
    keyed,
    probe,
)
from backstop.guard.claims.claim import perform
from backstop.guard.claims.desk import Produced
from backstop.ports import Answer, Claim, Settlement, Standing

SETTLE_S: Final = 30
RETENTION_S: Final = 3600

BEFORE, AFTER, LOOKING = "before the effect", "after the effect", "looking it up"


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 2, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


class Vanished(BaseException):
    """Raised within a process that is no more: nothing that it does reaches anybody."""


class Unreachable(Exception):
    """The provider said no: nothing happened."""


class Pause:
    """Awaited where a worker stands still."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __await__(self) -> Generator[str, None, None]:
        yield self.where


class Line:
    """One worker's way to the store. Once it is dead, nothing passes."""

    blocking = False

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.dead = False

    @property
    def header(self) -> Header:
        return self.store.header

    @property
    def store(self) -> MemoryStore:
        if self.dead:
            raise Vanished
        return self._store

    def append(self, event: Event) -> bool:
        return self.store.append(event)

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        return self.store.claim(intent, precondition)

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        self.store.settle(settlement, claim=claim)

    def read(self, run: str | None = None) -> Iterator[Event]:
        return self.store.read(run)


@dataclass(slots=True, kw_only=True, eq=False)
class Worker:
    """A process with one call. `at` is where it stands, None once it is over."""

    owner: str
    intent: EffectClaimed
    capability: str
    line: Line
    story: Coroutine[Any, Any, Answer]
    at: str | None = None
    answer: Answer | None = None
    error: BaseException | None = None

    @property
    def running(self) -> bool:
        """Its body has begun, and is not over."""
        return self.at in {BEFORE, AFTER}


@dataclass(slots=True, eq=False)
class World:
    """The store, the workers, and the truth: which effects went out when, and for whom."""

    watch: Watch = field(default_factory=Watch)
    workers: list[Worker] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    out: list[tuple[str, str | None, datetime]] = field(default_factory=list)
    received: dict[str, datetime] = field(default_factory=dict)
    orphans: list[Worker] = field(default_factory=list)
    store: MemoryStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=self.watch, is_alive=lambda owner: owner not in self.gone)

    def start(self, capability: str, key: str, override: str | None) -> Worker:
        """A worker begins, and goes on until it stands still."""
        owner = f"w{len(self.workers)}"
        intent = EffectClaimed(
            run="r",
            at="",
            step=f"s-{key}",
            tool=capability,
            key=f"{capability}-{key}",
            fingerprint="f",
            owner=owner,
            override=override,
        )
        line = Line(self.store)
        story = perform(
            line,
            intent,
            lambda: self._body(worker),
            no_effect_on=(Unreachable,),
            capability=self._capability(capability, intent),
        )
        worker = Worker(owner=owner, intent=intent, capability=capability, line=line, story=story)
        self.workers.append(worker)
        self.step(worker)
        return worker

    def step(self, worker: Worker, error: BaseException | None = None) -> None:
        """The worker goes on until it stands still again, or is over; `error` hits it first."""
        worker.at = None
        try:
            if error is None:
                worker.at = worker.story.send(None)
            else:
                worker.at = worker.story.throw(error)
        except StopIteration as over:
            worker.answer = over.value
        except (Unreachable, asyncio.CancelledError) as raised:
            worker.error = raised

    def kill(self, worker: Worker) -> None:
        """Its process is gone: it says and does nothing any more."""
        worker.line.dead = True
        worker.at = None
        self.gone.add(worker.owner)
        with suppress(Vanished):
            worker.story.close()
        self.orphans = [orphan for orphan in self.orphans if orphan is not worker]

    def cancel(self, worker: Worker) -> None:
        """Its caller lets go; what it runs in may go on all the same, in a thread say."""
        if worker.at == BEFORE:
            self.orphans.append(worker)
        self.step(worker, asyncio.CancelledError())

    def act(self, worker: Worker) -> None:
        """The effect goes out, unless a provider that acts once has had its key before."""
        key, override, now = worker.intent.key, worker.intent.override, self.watch.time
        if worker.capability == "keyed":
            name = downstream_key(worker.intent)
            since = self.received.get(name)
            if since is not None and now - since < timedelta(seconds=RETENTION_S):
                return
            self.received[name] = now
        self.out.append((key, override, now))

    def times(self, key: str) -> int:
        """How often an effect truly went out."""
        return sum(name == key for name, _, _ in self.out)

    def visible(self, key: str) -> bool:
        """Whether a lookup finds the effect yet."""
        settled = timedelta(seconds=SETTLE_S)
        return any(name == key and self.watch.time - at >= settled for name, _, at in self.out)

    def runs(self, key: str) -> bool:
        """Whether anybody's body may still send the effect out."""
        bodies = [worker for worker in self.workers if worker.running] + self.orphans
        return any(worker.intent.key == key for worker in bodies)

    def standing(self, key: str) -> Standing | None:
        """Where the store says that an effect stands."""
        return next((one for one in self.store.standings(key) if one.claimed.key == key), None)

    def decide(self, standing: Standing, *, give_up: bool = False) -> None:
        """A person looks at the world, and says truthfully what is so."""
        claimed = standing.claimed
        happened = any(
            (name, override) == (claimed.key, claimed.override) for name, override, _ in self.out
        )
        to = "committed" if happened else "failed" if give_up else "reopened"
        self.store.settle(
            EffectResolved(
                run="r",
                at="",
                key=claimed.key,
                to=to,
                by="ada",
                fence=standing.fence + (to == "reopened"),
            )
        )

    def undecided(self) -> list[Standing]:
        """What the store lists."""
        return list(self.store.standings())

    def in_doubt(self) -> list[Standing]:
        """What a person may decide: in doubt, and nobody can be at it any more."""
        return [
            one
            for one in self.undecided()
            if one.phase is Phase.IN_DOUBT and not self.runs(one.claimed.key)
        ]

    def _capability(self, name: str, intent: EffectClaimed) -> Capability | None:
        async def ask(key: str, arguments: Mapping[str, Any]) -> Found:
            found = Happened() if self.visible(key) else DidNotHappen()
            await Pause(LOOKING)
            return found

        match name:
            case "keyed":
                return keyed("key", retention=timedelta(seconds=RETENTION_S))
            case "probe":
                return probe(ask, settle=timedelta(seconds=SETTLE_S))
            case _:
                return None

    async def _body(self, worker: Worker) -> Produced:
        await Pause(BEFORE)
        self.act(worker)
        await Pause(AFTER)
        return Produced(result=msgspec.Raw(b'"paid"'))
