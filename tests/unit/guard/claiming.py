"""A world in which calls are claimed: its store, its time, its dead, and what truly happened."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.effectgate import Precondition
from backstop.core.events import EffectClaimed, Event, Header
from backstop.errors import BackstopError
from backstop.guard.claims.capability import Capability
from backstop.guard.claims.claim import perform_now
from backstop.guard.claims.desk import Produced
from backstop.ports import Answer, Claim, Settlement

PAID: Final = Produced(result=msgspec.Raw(b'"paid"'))
ARGUMENTS: Final = {"to": "acme"}


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def wait(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class World:
    """A store, its clock, who died, and what happened in truth."""

    watch: Watch = field(default_factory=Watch)
    dead: set[str] = field(default_factory=set)
    paid: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=self.watch, is_alive=lambda owner: owner not in self.dead)

    def dies(self, owner: str, capability: Capability | None = None) -> None:
        """`owner` claims, and is gone before it says anything."""

        class Killed(BaseException):
            pass

        def call() -> Produced:
            raise Killed

        with pytest.raises(Killed):
            perform_now(Mute(self.store), pay(owner), call, capability=capability)
        self.dead.add(owner)

    def pay(self, owner: str, capability: Capability | None = None) -> Answer:
        def call() -> Produced:
            self.paid.append(owner)
            return PAID

        return perform_now(self.store, pay(owner), call, capability=capability, arguments=ARGUMENTS)

    def kinds(self) -> list[type]:
        return [type(event) for event in self.store.read()]


def pay(owner: str = "alice") -> EffectClaimed:
    return EffectClaimed(
        run="r1", at="", step="s0", tool="pay", key="k1", fingerprint="f", owner=owner
    )


class Wrapped:
    """A store behind another; what it does not change, it hands on."""

    blocking = False

    def __init__(self, store: MemoryStore) -> None:
        self.inner = store

    @property
    def header(self) -> Header:
        return self.inner.header

    def append(self, event: Event) -> bool:
        return self.inner.append(event)

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        return self.inner.claim(intent, precondition)

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        self.inner.settle(settlement, claim=claim)

    def read(self, run: str | None = None) -> Iterator[Event]:
        return self.inner.read(run)


class Mute(Wrapped):
    """Does not hear how anything ended."""

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        pass


class Down(Wrapped):
    """Grants claims, and is out of reach from then on."""

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        raise BackstopError("the store is out of reach", slug="store-unreachable")


class Slow(Wrapped):
    """Waits for a network: until `go` at each claim, once `asked` says that it was asked."""

    blocking = True

    def __init__(self, store: MemoryStore, error: BackstopError | None = None) -> None:
        super().__init__(store)
        self.asked, self.go = threading.Event(), threading.Event()
        self.error = error
        self.threads: set[int] = set()

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        self.threads.add(threading.get_ident())
        self.asked.set()
        assert self.go.wait(5)
        if self.error is not None:
            raise self.error
        return super().claim(intent, precondition)
