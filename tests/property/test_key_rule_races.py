"""K3: two versions with different key rules at once, in every order of their looks and writes.

Each process stops before each thing that it asks of the store; a schedule says whose turn it
is. It may die at any of them, before or after the store has answered. Whatever happens, the
effect goes out at most once; and where nobody died it goes out, and the newer version is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import combinations
from threading import Condition, Thread
from typing import Any, TypeAlias

import pytest

from backstop.core.effectgate import Precondition
from backstop.core.events import EffectClaimed, Event
from backstop.core.ledgerverify import verify
from backstop.guard.claims.desk import Produced
from backstop.ports import Answer, Claim, Held, InDoubt, Recorded, Settlement
from tests.unit.guard.keyrules import PLAIN, SLUG, Version, World

Death: TypeAlias = tuple[str, int, bool] | None
"""Who dies, at which of its requests, and whether the store still hears that one."""


class Died(BaseException):
    """The process is gone."""


class Turns:
    """Lets several threads go on one at a time, in a given order; then as they come."""

    def __init__(self, order: tuple[str, ...]) -> None:
        self._order = list(order)
        self._over: set[str] = set()
        self._changed = Condition()

    def take(self, name: str, act: Callable[[], Any]) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: self._is_on(name))
            if self._order:
                self._order.pop(0)
            try:
                return act()
            finally:
                self._changed.notify_all()

    def end(self, name: str) -> None:
        with self._changed:
            self._over.add(name)
            self._changed.notify_all()

    def _is_on(self, name: str) -> bool:
        while self._order and self._order[0] in self._over:
            self._order.pop(0)
        return not self._order or self._order[0] == name


class InTurn:
    """The store as one process sees it, which asks in turn, and may die at it."""

    def __init__(self, world: World, name: str, turns: Turns, death: Death) -> None:
        self._world, self._name, self._turns = world, name, turns
        self._dies = death[1:] if death is not None and death[0] == name else None
        self._asked = 0
        self.header, self.blocking = world.store.header, world.store.blocking
        self.read = world.store.read

    def append(self, event: Event) -> bool:
        return bool(self._ask(lambda: self._world.store.append(event)))

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        answer: Claim | Answer = self._ask(lambda: self._world.store.claim(intent, precondition))
        return answer

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        self._ask(lambda: self._world.store.settle(settlement, claim=claim))

    def standings(self, key: str | None = None) -> Iterator[Any]:
        return iter(self._ask(lambda: list(self._world.store.standings(key))))

    def _ask(self, act: Callable[[], Any]) -> Any:
        return self._turns.take(self._name, lambda: self._heard(act))

    def _heard(self, act: Callable[[], Any]) -> Any:
        self._asked += 1
        if self._name in self._world.gone:
            raise Died
        if self._dies is None or self._dies[0] != self._asked:
            return act()
        if self._dies[1]:
            act()
        self._world.gone.add(self._name)
        raise Died


def schedules(ours: int, theirs: int) -> list[tuple[str, ...]]:
    """Every order in which two processes may make so many requests."""
    several = ours + theirs
    return [
        tuple("old" if place in chosen else "new" for place in range(several))
        for chosen in combinations(range(several), ours)
    ]


def race(
    order: tuple[str, ...], *, aware: bool, death: Death = None, tried: str = ""
) -> tuple[World, set[type]]:
    """Both versions ask for one effect; `aware` says that the older one knows both rules.

    `tried` is who has tried it before, and was refused.
    """
    world = World()
    versions = {"old": world.version(PLAIN, owner="old"), "new": world.version(SLUG, owner="new")}
    if tried:
        with suppress(ConnectionRefusedError):
            versions[tried].asks(vendor="Acme Corp", body=_refused)
    if aware:
        versions["old"] = world.version(PLAIN, owner="old")
    turns, told = Turns(order), set[type]()
    for name, version in versions.items():
        version.store = InTurn(world, name, turns, death)

    def go(name: str, version: Version) -> None:
        with suppress(Died):
            told.add(type(version.asks(vendor="Acme Corp")))
        turns.end(name)

    threads = [Thread(target=go, args=one) for one in versions.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return world, told


def _refused() -> Produced:
    raise ConnectionRefusedError


@pytest.mark.parametrize("aware", [False, True], ids=["rolling deploy", "rolled back and forth"])
@pytest.mark.parametrize("tried", ["", "old", "new"])
def test_k03_in_every_order_one_of_two_versions_acts(aware: bool, tried: str) -> None:
    """K3: a look, a claim, a bar and its settlement, an outcome, and what is said of it."""
    for order in schedules(4 if aware else 2, 5):
        world, told = race(order, aware=aware, tried=tried)
        assert len(world.out) <= 1, order
        assert told <= {Recorded, Held}, order
        assert isinstance(world.version(SLUG, owner="n2").asks(vendor="Acme Corp"), Recorded)
        assert isinstance(world.version(PLAIN, owner="o2").asks(vendor="Acme Corp"), Recorded)
        assert len(world.out) == 1, order
        verify(world.ledger(), name="raced.jsonl")


@pytest.mark.parametrize("who", ["old", "new"])
@pytest.mark.parametrize("heard", [False, True], ids=["unheard", "heard"])
@pytest.mark.parametrize("tried", ["", "old"])
def test_k03_whoever_dies_at_whatever_point_nothing_goes_out_twice(
    who: str, heard: bool, tried: str
) -> None:
    """K3: a half-made bar, or a claim without one, is a doubt and no second effect."""
    for nth in range(1, 6):
        for order in schedules(2, 5):
            world, _ = race(order, aware=False, death=(who, nth, heard), tried=tried)
            for rule in (SLUG, PLAIN, SLUG):
                answer = world.version(rule, owner="later").asks(vendor="Acme Corp")
                assert isinstance(answer, Recorded | Held | InDoubt), (order, nth, answer)
            assert len(world.out) <= 1, (order, nth)
            verify(world.ledger(), name="died.jsonl")
