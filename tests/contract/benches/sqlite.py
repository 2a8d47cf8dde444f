"""The embedded store, in a file of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from backstop.adapters.sqlite.store import SqliteStore
from backstop.core.events import Header
from tests.contract.bench import AGENT, Bench, Owners, SteppingClock, header

MARKS: tuple[pytest.MarkDecorator, ...] = ()


@contextmanager
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    folder: Path = request.getfixturevalue("tmp_path")
    owners, clock = Owners(), SteppingClock()
    with ExitStack() as stack:

        def opened(registered: Header | None) -> SqliteStore:
            store = SqliteStore(
                folder / "ledger.db",
                agent=AGENT,
                header=registered,
                clock=clock,
                is_alive=owners.is_alive,
            )
            return stack.enter_context(closing(store))

        yield Bench(
            store=opened(header()),
            clock=clock,
            kill=owners.kill,
            hide=owners.hide,
            wait=clock.jump,
            reopen=opened,
        )
