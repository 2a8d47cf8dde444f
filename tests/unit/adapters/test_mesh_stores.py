"""What the mesh's stores do where the world is not as it should be: clocks, room, torn rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from backstop.adapters.memory import MemoryStore
from backstop.adapters.sqlite.store import SqliteStore
from backstop.core.effectgate import Control, PastHorizon, Precondition
from backstop.core.effecttrust import Trust
from backstop.errors import BackstopError
from backstop.meshports import MeshStore
from backstop.ports import Claim, Recorded
from tests.contract.bench import AGENT, START, SteppingClock, header
from tests.contract.deeds import committed, granted, pay
from tests.contract.meshed import breaks, judged, trusts

HOUR = 3600.0
Opened = Callable[[SteppingClock], MeshStore]


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """The stores that trust the machine's clock; the shared one asks its server."""

    def memory(clock: SteppingClock) -> MeshStore:
        return MemoryStore(clock=clock, header=header())

    def sqlite(clock: SteppingClock) -> MeshStore:
        return SqliteStore(tmp_path / "l.db", agent=AGENT, header=header(), clock=clock)

    return memory if request.param == "memory" else sqlite


def until(seconds: float) -> Precondition:
    return judged(horizon=START.timestamp() + seconds)


def test_a_clock_that_is_turned_back_lets_nothing_out_that_has_a_horizon(opened: Opened) -> None:
    clock = SteppingClock()
    store = opened(clock)
    assert isinstance(store.claim(pay(key="k1"), until(HOUR)), Claim)
    clock.jump(-1800)
    answer = store.claim(pay(key="k2"), until(HOUR))
    assert isinstance(answer, PastHorizon)
    assert answer.now < answer.seen
    assert isinstance(store.claim(pay(key="k3"), judged()), Claim)
    clock.jump(1800)
    assert isinstance(store.claim(pay(key="k2"), until(HOUR)), Claim)


def test_what_was_past_its_horizon_stays_so_when_the_clock_is_turned_back(opened: Opened) -> None:
    clock = SteppingClock()
    store = opened(clock)
    clock.jump(2 * HOUR)
    assert isinstance(store.claim(pay(key="k1"), judged()), Claim)
    assert isinstance(store.claim(pay(key="k2"), until(HOUR)), PastHorizon)
    clock.jump(-2 * HOUR)
    assert isinstance(store.claim(pay(key="k2"), until(HOUR)), PastHorizon)


def test_another_process_knows_how_late_it_was(tmp_path: Path) -> None:
    def sqlite(clock: SteppingClock) -> SqliteStore:
        return SqliteStore(tmp_path / "l.db", agent=AGENT, header=header(), clock=clock)

    late = SteppingClock()
    late.jump(2 * HOUR)
    breaks(sqlite(late))
    with closing(sqlite(SteppingClock())) as other:
        asked = msgspec.structs.replace(until(HOUR), epoch=1)
        assert isinstance(other.claim(pay(), asked), PastHorizon)


def test_a_lease_is_not_made_younger_by_turning_the_clock_back(opened: Opened) -> None:
    clock = SteppingClock()
    store = opened(clock)
    store.lease("r1", "worker-1", lease_s=30)
    clock.jump(60)
    assert isinstance(store.claim(pay(), judged()), Claim)
    clock.jump(-60)
    second = store.lease("r1", "worker-2", lease_s=30)
    assert getattr(second, "fence", 0) == 2


def test_a_full_memory_forgets_nothing_and_begins_nothing_more() -> None:
    """Eviction never yields VERIFIED, for there is none; what is under way is settled."""
    store = MemoryStore(clock=SteppingClock(), limit=3)
    first, second = granted(store, pay(key="k1")), store.claim(pay(key="k2"), judged())
    store.settle(committed(first), claim=first)
    assert isinstance(second, Claim)
    for asked in (judged(), None):
        with pytest.raises(BackstopError) as caught:
            store.claim(pay(key="k3"), asked)
        assert caught.value.slug == "store-full"
    store.settle(committed(second), claim=second)
    assert isinstance(store.claim(pay(key="k2"), judged()), Recorded)
    assert breaks(store) == 1
    assert trusts(store) == {"k2": Trust.SUSPECT}


@pytest.mark.parametrize(
    "tears",
    [
        "UPDATE mesh SET control = '{'",
        "UPDATE mesh_effects SET gated = '{'",
        "UPDATE mesh_leases SET leased = '{'",
    ],
)
def test_a_torn_row_of_the_mesh_lets_nothing_out(tmp_path: Path, tears: str) -> None:
    path = tmp_path / "l.db"
    store = SqliteStore(path, agent=AGENT, header=header(), clock=SteppingClock())
    lease = store.lease("r1", "worker-1", lease_s=30)
    claim = store.claim(pay(), judged())
    assert isinstance(claim, Claim)
    store.settle(committed(claim), claim=claim)
    breaks(store)
    with closing(sqlite3.connect(path)) as db:
        db.execute(tears)
        db.commit()
    asked = msgspec.structs.replace(judged(1, undoes="k1"), lease=lease)
    with pytest.raises(BackstopError) as caught:
        store.claim(pay("bob"), asked)
    assert caught.value.slug == "store-unreadable"


def test_a_file_that_was_replaced_lets_nothing_out(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    store = SqliteStore(path, agent=AGENT, header=header(), clock=SteppingClock())
    breaks(store)
    path.unlink()
    with pytest.raises(BackstopError) as caught:
        store.claim(pay(), judged(1))
    assert caught.value.slug == "store-replaced"


def test_a_file_without_a_mesh_gets_no_tables_of_one(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with closing(SqliteStore(path, agent=AGENT, header=header(), clock=SteppingClock())) as store:
        granted(store, pay())
        assert store.control() == Control()
        assert list(store.out()) == []

    def tables() -> set[str]:
        with closing(sqlite3.connect(path)) as db:
            return {name for (name,) in db.execute("SELECT name FROM sqlite_master")}

    assert not any(name.startswith("mesh") for name in tables())
    with closing(SqliteStore(path, agent=AGENT, header=header(), clock=SteppingClock())) as store:
        breaks(store)
    assert {"mesh", "mesh_effects", "mesh_leases"} <= tables()
