"""The shared store, on the emulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from backstop.adapters.firestore import FirestoreStore, Options
from backstop.adapters.firestore.documents import Effect
from backstop.core.events import Header
from tests.contract.bench import AGENT, Bench, Owners, SteppingClock, header
from tests.emulators import firestore, fresh_name

MARKS: tuple[pytest.MarkDecorator, ...] = (pytest.mark.emulator,)


class Waiting(FirestoreStore):
    """A store whose server's time can be put forward."""

    waited = 0.0

    def _now(self, effect: Effect | None) -> float:
        return super()._now(effect) + self.waited


@contextmanager
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    host, collection = firestore(), fresh_name()
    owners, clock = Owners(), SteppingClock()
    opened: list[Waiting] = []

    def reopen(registered: Header | None) -> Waiting:
        store = Waiting(
            project="p",
            database="(default)",
            collection=collection,
            agent=AGENT,
            header=registered,
            clock=clock,
            emulator=host,
            options=Options(is_alive=owners.is_alive),
        )
        opened.append(store)
        return store

    store = reopen(header())

    def wait(seconds: float) -> None:
        store.waited += seconds

    yield Bench(
        store=store,
        clock=clock,
        kill=owners.kill,
        hide=owners.hide,
        wait=wait,
        reopen=reopen,
    )
    for each in opened:
        each.close()
