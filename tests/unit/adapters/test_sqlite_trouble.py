"""What stands in a SQLite store's way: a typed error, the effect refused, nothing lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from backstop.adapters.sqlite.file import (
    SCHEMA_VERSION,
    filesystem_of,
    is_network,
    refuse_alone,
    refuse_network,
)
from backstop.adapters.sqlite.store import SqliteStore
from backstop.clock import SystemClock
from backstop.core.events import AttemptStarted, EffectCommitted, RunOpened, StepStarted
from backstop.core.lifecycle import Lives
from backstop.core.order import Order
from backstop.errors import BackstopError
from backstop.ports import Held, Recorded
from tests.contract.bench import AGENT
from tests.contract.deeds import committed, done, granted, pay
from tests.unit.adapters.sqlite_bench import opened

NOBODY = 65534
ALONE = "36 28 8:1 /var/lib/ledger.db /data/ledger.db rw,relatime - ext4 /dev/sda1 rw"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(opened(path)) as one:
        one.append(RunOpened(run="r1", at=""))
        one.append(StepStarted(run="r1", at="", step="s0", cursor=0))
        one.append(AttemptStarted(run="r1", at="", step="s0", attempt=1))
        yield one


@contextmanager
def refused(slug: str, path: Path) -> Iterator[None]:
    with pytest.raises(BackstopError) as caught:
        yield
    assert caught.value.slug == slug
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def effects(path: Path) -> int:
    """How many effects happened; the file and the ledger in it are whole."""
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with closing(SqliteStore(path, agent=AGENT, header=None, clock=SystemClock())) as found:
        events = list(found.read())
    lives, order = Lives(guarded=True), Order()
    assert [lives.follow(event) or order.check(event) for event in events] == [None] * len(events)
    return sum(isinstance(event, EffectCommitted) for event in events)


def test_a_store_that_is_locked_for_long_refuses_effects_and_tells_what_is_done(
    store: SqliteStore, path: Path
) -> None:
    done(store, pay())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert isinstance(store.claim(pay("bob")), Recorded)
        with refused("store-busy", path):
            store.claim(pay(key="k2"))
        other.execute("ROLLBACK")
    done(store, pay(key="k2"))
    assert effects(path) == 2


def test_a_full_disk_refuses_effects_and_loses_nothing(store: SqliteStore, path: Path) -> None:
    claim = granted(store, pay())
    big = b'"' + b"x" * 300_000 + b'"'
    with limited(store) as pages:
        with refused("store-full", path):
            granted(store, pay(key="k2", args=msgspec.Raw(big)))
        with refused("store-full", path):
            store.settle(committed(claim, big), claim=claim)
        with refused("store-full", path):
            store.append(
                StepStarted(run="r1", at="", step="s1", cursor=1, message=msgspec.Raw(big))
            )
        assert store.claim(pay("bob")) == Held(owner="alice")
        pages(1 << 20)
    store.settle(committed(claim, big), claim=claim)
    done(store, pay(key="k2", args=msgspec.Raw(big)))
    assert effects(path) == 2


@contextmanager
def limited(store: SqliteStore) -> Iterator[Callable[[int], None]]:
    """No more pages than there are."""

    def pages(number: int) -> None:
        limit = f"PRAGMA max_page_count = {number}"
        store._file.work(lambda db: db.execute(limit))  # noqa: SLF001 - a disk full for it alone

    pages(1)  # SQLite takes what it has for the least
    yield pages


def as_nobody(act: Callable[[], str]) -> str:
    """What `act` says in a process that has no right to anything but reading."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        said = "it went through"
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            said = act()
        except BackstopError as error:
            said = error.slug
        except BaseException as error:  # noqa: BLE001 - told to the parent
            said = repr(error)
        finally:
            os.write(write, said.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def shelf() -> Iterator[Path]:
    """A folder that everybody may read; pytest's own are its owner's alone."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_folder_holds_no_store(shelf: Path) -> None:
    shelf.chmod(0o555)
    assert as_nobody(lambda: str(opened(shelf / "ledger.db"))) == "store-read-only"


def test_a_read_only_store_refuses_effects(shelf: Path) -> None:
    path = shelf / "ledger.db"
    with closing(opened(path)) as store:
        done(store, pay())
    path.chmod(0o444)
    shelf.chmod(0o555)
    assert as_nobody(lambda: str(opened(path))) == "store-read-only"
    shelf.chmod(0o755)
    with closing(opened(path)) as store:
        assert isinstance(store.claim(pay("bob")), Recorded)


def test_who_may_only_read_a_store_that_is_in_use_can_pull_it(shelf: Path) -> None:
    path = shelf / "ledger.db"
    at = datetime(2100, 1, 1, tzinfo=UTC)

    def pulled() -> str:
        with closing(SqliteStore(path, agent=AGENT, header=None, clock=SystemClock())) as reader:
            parts = reader.parts(at)
            return str([len(list(reader.pull(part, at=at))) for part in parts])

    with closing(opened(path)) as store:
        done(store, pay())
        shelf.chmod(0o555)
        assert as_nobody(pulled) == "[2]"


def test_where_the_lock_of_an_owner_cannot_be_held_nothing_is_claimed(path: Path) -> None:
    path.with_name("ledger.db.owners").write_text("in the way")
    with closing(opened(path)) as store:
        with refused("store-read-only", path):
            store.claim(pay())
        assert list(store.read()) == []


def test_what_is_no_database_is_left_alone(path: Path) -> None:
    path.write_bytes(b"once upon a time " * 1000)
    with refused("store-damaged", path):
        opened(path)
    assert path.read_bytes() == b"once upon a time " * 1000


def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE t (x)")
    before = path.read_bytes()
    with refused("store-schema", path):
        opened(path)
    assert path.read_bytes() == before


def test_a_store_of_another_version_is_refused(store: SqliteStore, path: Path) -> None:
    done(store, pay())
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with refused("store-schema", path):
        opened(path)
    with refused("store-schema", path):
        SqliteStore(path, agent=AGENT, header=None, clock=SystemClock())


def test_a_folder_is_no_store(path: Path) -> None:
    path.mkdir()
    with refused("store-unusable", path):
        opened(path)


def test_a_store_in_a_folder_that_is_missing_is_not_made(path: Path) -> None:
    with refused("store-unusable", path.parent / "no" / "ledger.db"):
        opened(path.parent / "no" / "ledger.db")


def test_whoever_only_looks_makes_no_store(path: Path) -> None:
    with refused("store-missing", path):
        SqliteStore(path, agent=AGENT, header=None, clock=SystemClock())
    assert not path.exists()
    path.touch()
    with refused("store-missing", path):
        SqliteStore(path, agent=AGENT, header=None, clock=SystemClock())
    assert path.read_bytes() == b""


def test_an_agent_that_wrote_nothing_is_missing(store: SqliteStore, path: Path) -> None:
    with refused("store-missing", path):
        SqliteStore(path, agent="nobody", header=None, clock=SystemClock())


def test_a_header_that_cannot_be_read_is_refused(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE ledgers SET header = 'x'")
    with pytest.raises(BackstopError) as caught:
        opened(path)
    assert caught.value.slug == "store-unreadable"


MOUNTS = r"""
22 1 254:1 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /mnt rw - nfs4 server:/export rw,vers=4.2
31 30 0:41 / /mnt/a\040b\134c rw shared:5 - tmpfs tmpfs rw
32 22 0:42 / /över rw - fuse.sshfs host: rw
33 22 0:43 / /twice rw - tmpfs tmpfs rw
34 22 0:44 / /twice rw - cifs //server/share rw
this is no mount
35 22 0:45 / /torn
"""


@pytest.mark.parametrize(
    ("place", "filesystem"),
    [
        ("/var/ledger.db", "ext4"),
        ("/mnt/ledger.db", "nfs4"),
        ("/mntx/ledger.db", "ext4"),
        ("/mnt/a b\\c/ledger.db", "tmpfs"),
        ("/över/ledger.db", "fuse.sshfs"),
        ("/twice/ledger.db", "cifs"),
    ],
)
def test_a_file_lies_where_it_is_mounted(place: str, filesystem: str) -> None:
    assert filesystem_of(Path(place), MOUNTS) == filesystem


def test_a_store_on_a_network_drive_is_refused() -> None:
    refuse_network(Path("/var/ledger.db"), MOUNTS)
    with refused("store-network", Path("/mnt/ledger.db")):
        refuse_network(Path("/mnt/ledger.db"), MOUNTS)


def test_a_file_that_is_mounted_without_its_folder_is_refused() -> None:
    """Its log and its owners' locks would stay on the other side."""
    refuse_alone(Path("/mnt/ledger.db"), MOUNTS)
    with refused("store-mounted", Path("/data/ledger.db")):
        refuse_alone(Path("/data/ledger.db"), f"{MOUNTS}\n{ALONE}")


def test_where_nothing_says_it_a_file_lies_nowhere() -> None:
    assert filesystem_of(Path("/x"), "") == ""


@pytest.mark.parametrize(
    "name", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.gcsfuse"]
)
def test_network_drives_are_refused(name: str) -> None:
    assert is_network(name)


@pytest.mark.parametrize("name", ["ext4", "xfs", "btrfs", "overlay", "tmpfs", "zfs", "fuse", ""])
def test_local_disks_are_not(name: str) -> None:
    assert not is_network(name)


def test_an_outcome_that_the_file_did_not_take_is_brought_along(
    store: SqliteStore, path: Path
) -> None:
    """Its process lives, so nobody else may decide what became of the effect."""
    claim = granted(store, pay())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with refused("store-busy", path):
            store.settle(committed(claim), claim=claim)
    assert isinstance(list(store.read("r1"))[-1], EffectCommitted)
    assert isinstance(store.claim(pay("bob")), Recorded)


@pytest.mark.parametrize("another", [True, False])
def test_a_file_that_was_replaced_while_it_was_in_use_grants_nothing(
    store: SqliteStore, path: Path, tmp_path: Path, another: bool
) -> None:
    """SQLite goes on with the old one, where nobody finds what is claimed."""
    done(store, pay())
    (tmp_path / "old").mkdir()
    for file in tmp_path.glob("ledger.db*"):
        file.rename(tmp_path / "old" / file.name)
    if another:
        with closing(opened(path)) as other:
            granted(other, pay(key="k2"))
    with refused("store-replaced", path):
        store.claim(pay(key="k2"))
