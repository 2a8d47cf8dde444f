"""The reference store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.events import Header
from tests.contract.bench import Bench, Owners, SteppingClock, header

MARKS: tuple[pytest.MarkDecorator, ...] = ()


@contextmanager
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    owners, clock = Owners(), SteppingClock()
    store = MemoryStore(clock=clock, is_alive=owners.is_alive, header=header())

    def reopen(registered: Header | None) -> MemoryStore:
        if registered is not None:
            store.register(registered)
        return store

    yield Bench(
        store=store,
        clock=clock,
        kill=owners.kill,
        hide=owners.hide,
        wait=clock.jump,
        reopen=reopen,
    )
