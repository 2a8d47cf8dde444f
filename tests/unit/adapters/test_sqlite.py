"""The SQLite store between processes: who owns what, for how long, and who sees it."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Thread

import pytest

from backstop.adapters.sqlite.file import Durability
from backstop.adapters.sqlite.store import SqliteStore
from backstop.clock import SystemClock
from backstop.core.canon import CANON_VERSION
from backstop.core.events import (
    FORMAT,
    CallAnswered,
    CursorAdvanced,
    Header,
    RunClosed,
    RunOpened,
)
from backstop.core.lifecycle import Lives
from backstop.errors import BackstopError, ConfigError
from backstop.ports import Claim, Conflict, Held, InDoubt, Liveness, Recorded
from backstop.wiring.stores import find_store, open_store
from tests.contract.bench import AGENT, SteppingClock, header
from tests.contract.deeds import committed, done, doubted, failed, granted, pay, resolved
from tests.unit.adapters.sqlite_bench import opened, worker


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(opened(path)) as one:
        yield one


def in_child(act: Callable[[], str]) -> str:
    """What a forked child says."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            said = act()
        except BaseException as error:  # noqa: BLE001 - told to the parent
            said = repr(error)
        os.write(write, said.encode())
        os._exit(0)
    said = os.read(read, 1000).decode()  # not to the end: the child's own child has it open too
    os.waitpid(child, 0)
    os.close(write)
    os.close(read)
    return said


def test_what_a_living_process_claimed_is_held(store: SqliteStore, path: Path) -> None:
    with worker(path) as other:
        assert other.ask("claim k1") == "Claim"
        assert store.claim(pay("ours")) == Held(owner="theirs")
        assert other.ask("commit k1") == "done"
        assert isinstance(store.claim(pay("ours")), Recorded)


def test_what_a_killed_process_claimed_is_in_doubt_at_once(store: SqliteStore, path: Path) -> None:
    with worker(path) as other:
        assert other.ask("claim k1") == "Claim"
        other.kill()
        answer = store.claim(pay("ours"))
        assert isinstance(answer, InDoubt)
        assert answer.gone
        assert "theirs is gone" in answer.reason


def test_a_stopped_process_keeps_its_claim_however_long_it_sleeps(
    store: SqliteStore, path: Path
) -> None:
    with worker(path) as other:
        assert other.ask("claim k1") == "Claim"
        other.process.send_signal(signal.SIGSTOP)
        assert store.claim(pay("ours")) == Held(owner="theirs")
        other.process.send_signal(signal.SIGCONT)
        assert other.ask("commit k1") == "done"


def test_a_dead_process_stays_dead_once_its_lock_is_cleared_away(
    store: SqliteStore, path: Path
) -> None:
    locks = path.with_name("ledger.db.owners")
    with worker(path) as other:
        other.ask("claim k1")
        assert len(list(locks.glob("*.lock"))) == 1
        other.kill()
    with worker(path, "third") as other:
        assert other.ask("claim k2") == "Claim"
        assert len(list(locks.glob("*.lock"))) == 1
        assert [one.owner for one in store.standings()] == [Liveness.GONE, Liveness.ALIVE]


def test_a_lock_that_somebody_removed_does_not_end_its_owner(
    store: SqliteStore, path: Path
) -> None:
    with worker(path) as other:
        other.ask("claim k1")
        for lock in path.with_name("ledger.db.owners").iterdir():
            lock.unlink()
        assert store.claim(pay("ours")) == Held(owner="theirs")
        other.kill()
        assert isinstance(store.claim(pay("ours")), InDoubt)


def test_a_forked_child_is_an_owner_of_its_own(store: SqliteStore, path: Path) -> None:
    granted(store, pay("parent"))

    def act() -> str:
        granted(store, pay("child", key="k2"))
        return type(store.claim(pay("child"))).__name__

    assert in_child(act) == "Held"
    assert isinstance(store.claim(pay("parent", key="k2")), InDoubt)
    assert store.claim(pay("other")) == Held(owner="parent")
    claim = Claim(run="r1", key="k1", owner="parent", fence=1)
    store.settle(committed(claim), claim=claim)


def test_a_child_that_lives_on_does_not_keep_its_dead_parent_alive(
    store: SqliteStore, path: Path
) -> None:
    read, write = os.pipe()

    def act() -> str:
        with closing(opened(path)) as mine:
            granted(mine, pay("parent"))
            if os.fork() == 0:  # it outlives its parent until the pipe is closed
                os.close(write)
                os.read(read, 1)
                os._exit(0)
        return "claimed"

    assert in_child(act) == "claimed"
    answer = store.claim(pay("ours"))
    os.close(write)
    os.close(read)
    assert isinstance(answer, InDoubt)
    assert answer.gone


def test_whoever_comes_by_a_link_finds_the_same_locks(store: SqliteStore, path: Path) -> None:
    granted(store, pay("ours"))
    other = path.with_name("elsewhere")
    other.mkdir()
    (other / "link.db").symlink_to(path)
    with worker(other / "link.db") as there:
        assert there.ask("claim k1") == "Held"
        assert there.ask("claim k2") == "Claim"
        assert len(list(path.with_name("ledger.db.owners").glob("*.lock"))) == 2


def test_of_four_processes_one_is_granted_each_key(path: Path) -> None:
    keys = [f"k{number}" for number in range(25)]
    with ExitStack() as stack:
        others = [stack.enter_context(worker(path, f"owner-{n}")) for n in range(4)]
        for other in others:
            for key in keys:
                other.say(f"claim {key}")
        answers = Counter((other.hear(), key) for other in others for key in keys)
    assert answers == Counter(
        {("Claim", key): 1 for key in keys} | {("Held", key): 3 for key in keys}
    )


def test_eight_threads_share_a_store(store: SqliteStore) -> None:
    faults: list[BaseException] = []

    def act(name: str) -> None:
        try:
            for number in range(20):
                done(store, pay(name, key=f"{name}-{number}"))
                assert isinstance(store.claim(pay("x", key=f"{name}-{number}")), Recorded)
                store.append(RunOpened(run=f"{name}-{number}", at=""))
        except BaseException as error:  # noqa: BLE001 - told by the test
            faults.append(error)

    threads = [Thread(target=act, args=(f"owner-{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    lives = Lives(guarded=True)
    told = list(store.read())
    assert [lives.follow(event) for event in told] == [None] * len(told)
    assert len(told) == 8 * 20 * 3


def test_many_may_make_the_file_at_once(path: Path) -> None:
    gate, faults = Barrier(8), list[BaseException]()

    def act(number: int) -> None:
        gate.wait()
        try:
            with closing(opened(path, registered=header(versions={str(number): "v"}))) as mine:
                done(mine, pay(key=str(number)))
        except BaseException as error:  # noqa: BLE001 - told by the test
            faults.append(error)

    threads = [Thread(target=act, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    with closing(SqliteStore(path, agent=AGENT, header=None, clock=SystemClock())) as found:
        assert len(list(found.read())) == 16
        assert found.header.versions == {str(number): "v" for number in range(8)}


def test_one_file_holds_the_ledgers_of_several_agents(store: SqliteStore, path: Path) -> None:
    theirs = Header(format=FORMAT, agent="buyer", canon=CANON_VERSION, tenant="t")
    with closing(SqliteStore(path, agent="buyer", header=theirs, clock=SystemClock())) as other:
        done(store, pay())
        assert list(other.read()) == []
        assert isinstance(other.claim(pay("ours", fingerprint="f2")), Claim)
        assert isinstance(store.claim(pay("ours", fingerprint="f2")), Conflict)
        assert (store.header.agent, other.header) == (AGENT, theirs)


def test_s09_a_result_that_cannot_be_read_is_no_reason_to_run_again(
    store: SqliteStore, path: Path
) -> None:
    """S09: the row stays committed."""
    done(store, pay())
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE effects SET settled = substr(settled, 1, 40)")
    for view in (store, opened(path)):
        with closing(view), pytest.raises(BackstopError) as caught:
            view.claim(pay("ours"))
        assert caught.value.slug == "store-unreadable"
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT phase, fence FROM effects").fetchall() == [("committed", 1)]


def test_what_outlives_power_is_chosen_in_the_url(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/led%20ger%3F.db"
    for asked in ("", "?durability=power", f"?durability={Durability.PROCESS}"):
        store = open_store(url + asked, header=header())
        assert isinstance(store, SqliteStore)
        store.append(RunOpened(run=asked or "r", at=""))
        store.close()
    assert (tmp_path / "led ger?.db").exists()
    found = find_store(url, agent=AGENT)
    assert len(list(found.read())) == 3
    for wrong in ("?durability=none", "?x=1", "#x"):
        with pytest.raises(ConfigError) as caught:
            open_store(url + wrong, header=header())
        assert caught.value.slug == "store-url"


def test_what_must_outlive_a_power_cut_is_on_the_disk_and_nothing_else(
    store: SqliteStore,
) -> None:
    said: list[str] = []

    def heard(line: str) -> None:
        said.append(line.strip())

    store._file.work(lambda db: db.set_trace_callback(heard))  # noqa: SLF001 - nothing else tells

    def synced(act: Callable[[], object]) -> bool:
        """Whether what `act` writes was synced as it was written."""
        before = len(said)
        act()
        ends = [n for n, one in enumerate(said) if one.startswith(("INSERT", "UPDATE", "COMMIT"))]
        assert ends[-1] >= before
        levels = [one for one in said[: ends[-1]] if one.startswith("PRAGMA synchronous")]
        return not levels or levels[-1].endswith("FULL")

    first = pay()
    assert not synced(lambda: store.append(RunOpened(run="r1", at="")))
    assert synced(lambda: store.claim(first))
    claim = Claim(run="r1", key="k1", owner="alice", fence=1)
    assert not synced(lambda: store.settle(failed(claim, final=False), claim=claim))
    assert synced(lambda: store.claim(first))
    claim = Claim(run="r1", key="k1", owner="alice", fence=2)
    assert not synced(lambda: store.settle(doubted(claim), claim=claim))
    assert synced(lambda: store.settle(resolved("committed", fence=2)))
    answered = CallAnswered(run="r1", at="", step="s0", tool="pay", key="k1", how="recorded")
    length = len(said)
    store.append(answered)
    assert len(said) == length
    assert not synced(lambda: store.append(RunOpened(run="r2", at="")))
    store.append(answered)
    assert synced(lambda: store.append(CursorAdvanced(run="r1", at="", step="s0", cursor=1)))
    assert synced(lambda: store.append(RunClosed(run="r1", at="", status="complete")))
    del said[:]
    for _ in range(3):
        assert isinstance(store.claim(first), Recorded)
        store.append(answered)
    assert all(one.split()[0] == "SELECT" for one in said)


def test_what_was_pulled_stays_so_though_another_clock_is_late(tmp_path: Path) -> None:
    """A process whose clock is an hour behind writes nothing into the time that was pulled."""
    ahead, behind = SteppingClock(), SteppingClock()
    behind.jump(-3600)
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(
                closing(SqliteStore(tmp_path / "l.db", agent=AGENT, header=header(), clock=clock))
            )
            for clock in (ahead, behind)
        )
        first = granted(other, pay(key="k0"))
        done(one, pay())
        at = ahead.now()
        before = [list(one.pull(part, at=at)) for part in one.parts(at)]
        done(other, pay(key="k2"))
        other.append(RunOpened(run="r9", at=""))
        other.settle(committed(first), claim=first)
        assert [list(other.pull(part, at=at)) for part in other.parts(at)] == before
        assert len(list(one.read())) == 7


def test_an_instant_to_come_does_not_put_the_clock_forward(path: Path) -> None:
    with closing(opened(path)) as store:
        far = SystemClock().now() + timedelta(days=400)
        assert list(store.pull("all", at=far)) == []
        store.append(RunOpened(run="r1", at=""))
        (event,) = store.read()
        assert event.at < far.isoformat()


def test_a_store_that_was_closed_opens_again(store: SqliteStore) -> None:
    done(store, pay())
    store.close()
    store.close()
    assert isinstance(store.claim(pay("bob")), Recorded)


def test_a_person_may_decide_without_being_an_owner(store: SqliteStore, path: Path) -> None:
    claim = granted(store, pay())
    store.settle(doubted(claim), claim=claim)
    with closing(SqliteStore(path, agent=AGENT, header=None, clock=SystemClock())) as person:
        assert [one.phase.value for one in person.standings()] == ["in doubt"]
        assert len(list(path.with_name("ledger.db.owners").glob("*.lock"))) == 1
