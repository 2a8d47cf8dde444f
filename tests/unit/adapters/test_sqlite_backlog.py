"""That what stands on record was told again is put off, and never lost by a process that ends."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backstop.adapters.sqlite.store import SqliteStore
from backstop.core.events import CallAnswered, CursorAdvanced, Event, RunOpened
from backstop.ports import Recorded
from tests.contract.bench import SteppingClock
from tests.contract.deeds import committed, done, granted, pay
from tests.unit.adapters.sqlite_bench import opened

ENDS = """
import sys
from pathlib import Path
from tests.unit.adapters.sqlite_bench import opened
from tests.unit.adapters.test_sqlite_backlog import answered
store = opened(Path(sys.argv[1]))
store.append(answered())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(opened(path)) as one:
        yield one


@pytest.fixture
def seen(path: Path) -> Iterator[Callable[[], list[Event]]]:
    """What another process finds on record."""
    with closing(opened(path)) as other:
        yield lambda: list(other.read())


def answered(how: str = "recorded") -> CallAnswered:
    return CallAnswered(run="r1", at="", step="s0", tool="pay", key="k1", how=how)


def answers(events: list[Event]) -> int:
    return sum(isinstance(event, CallAnswered) for event in events)


@pytest.mark.parametrize(
    "follows",
    [
        lambda store: store.append(RunOpened(run="r9", at="")),
        lambda store: store.append(CursorAdvanced(run="r1", at="", step="s0", cursor=1)),
        lambda store: store.append(answered("held")),
        lambda store: store.claim(pay(key="k2")),
        lambda store: store.read(),
        lambda store: store.standings(),
        lambda store: store.parts(SteppingClock().now()),
        lambda store: store.close(),
    ],
    ids=["append", "cursor", "held", "claim", "read", "standings", "parts", "close"],
)
def test_what_was_told_again_is_on_record_before_anything_that_follows(
    store: SqliteStore, seen: Callable[[], list[Event]], follows: Callable[[SqliteStore], object]
) -> None:
    done(store, pay())
    store.append(answered())
    assert answers(seen()) == 0
    follows(store)
    events = seen()
    assert isinstance(events[2], CallAnswered)


def test_a_settlement_comes_after_what_was_told_while_its_tool_ran(
    store: SqliteStore, seen: Callable[[], list[Event]]
) -> None:
    done(store, pay())
    claim = granted(store, pay(key="k2"))
    store.append(answered())
    store.settle(committed(claim), claim=claim)
    assert [type(event).__name__ for event in seen()[2:]] == [
        "EffectClaimed",
        "CallAnswered",
        "EffectCommitted",
    ]


def test_a_key_that_comes_after_one_that_was_told_is_looked_up_first(
    store: SqliteStore, path: Path, seen: Callable[[], list[Event]]
) -> None:
    """A worker that has never seen the keys of a step is told all of them without a write."""
    for key in ("k1", "k2", "k3"):
        done(store, pay(key=key))
    with closing(opened(path)) as other:
        for key in ("k1", "k2", "k3"):
            assert isinstance(other.claim(pay(key=key)), Recorded)
            other.append(answered())
        assert answers(seen()) == 0
    assert answers(seen()) == 3


def test_what_nothing_follows_does_not_wait_without_end(
    store: SqliteStore, seen: Callable[[], list[Event]]
) -> None:
    for _ in range(256):
        assert answers(seen()[-1:]) == 0
        store.append(answered())
    assert answers(seen()) == 256


def test_a_store_that_is_dropped_leaves_nothing_unwritten(
    path: Path, seen: Callable[[], list[Event]]
) -> None:
    store = opened(path)
    store.append(answered())
    del store
    gc.collect()
    assert answers(seen()) == 1


def test_a_process_that_ends_leaves_nothing_unwritten(
    path: Path, seen: Callable[[], list[Event]]
) -> None:
    subprocess.run([sys.executable, "-c", ENDS, str(path)], check=True)
    assert answers(seen()) == 1


def test_a_forked_child_does_not_write_what_is_its_parents(
    store: SqliteStore, seen: Callable[[], list[Event]]
) -> None:
    store.append(answered())
    if (child := os.fork()) == 0:
        store.append(RunOpened(run="r2", at=""))
        store.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert answers(seen()) == 0
    store.append(RunOpened(run="r3", at=""))
    assert answers(seen()) == 1
