"""What one kind of archive promises beyond the suite of all: fullness, cut-off files, troubles."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backstop.adapters.archives.memory import MemoryArchive
from backstop.adapters.archives.parquet import ParquetArchive
from backstop.adapters.archives.rows import day_from, entry_from
from backstop.adapters.archives.sqlite import SqliteArchive, is_archive
from backstop.adapters.sqlite.store import SqliteStore
from backstop.core.auditlog import ORIGIN, tip_at
from backstop.errors import BackstopError, LedgerError
from tests.contract.archives.bench import held, story
from tests.contract.bench import SteppingClock, header


def slug_of(caught: pytest.ExceptionInfo[BackstopError]) -> str:
    assert str(caught.value).count("\n") == 0
    return caught.value.slug


def test_a_full_archive_refuses_what_is_new_and_forgets_nothing() -> None:
    entries = story()
    archive = MemoryArchive(limit=len(entries))
    archive.append(entries[:5])
    archive.append(entries)
    assert held(archive) == entries
    small = MemoryArchive(limit=5)
    small.append(entries[:5])
    with pytest.raises(BackstopError) as caught:
        small.append(entries)
    assert slug_of(caught) == "store-full"
    assert list(small.read()) == entries[:5]
    with pytest.raises(LedgerError) as fault:
        held(small)
    assert fault.value.slug == "archive-unsealed", "what is full is not whole, and says so"


def test_a_file_that_was_cut_off_before_it_had_its_name_is_nothing(tmp_path: Path) -> None:
    entries = story()
    archive = ParquetArchive(tmp_path / "a", create=True)
    archive.append(entries[:4])
    left = tmp_path / "a" / ".entries-0000000000000005.parquet.part"
    left.write_bytes(b"PAR1half")
    assert archive.head() == tip_at(entries[3])
    archive.append(entries)
    assert held(archive) == entries
    assert not left.exists()


@pytest.mark.parametrize("kept", [0, 4, 200, -1])
def test_a_torn_file_of_entries_is_never_taken_for_whole(tmp_path: Path, kept: int) -> None:
    archive = ParquetArchive(tmp_path / "a", create=True)
    archive.append(story())
    (file,) = (tmp_path / "a").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:kept])
    for ask in (
        archive.head,
        archive.check,
        lambda: list(archive.read()),
        lambda: list(archive.days()),
    ):
        with pytest.raises(BackstopError) as caught:
            ask()
        assert slug_of(caught) == "store-damaged"


def test_a_folder_of_another_form_and_one_without_a_label_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mounted").mkdir()
    with pytest.raises(BackstopError) as caught:
        ParquetArchive(tmp_path / "mounted", create=False)
    assert slug_of(caught) == "store-missing"
    ParquetArchive(tmp_path / "a", create=True).close()
    (tmp_path / "a" / "archive.json").write_text('{"t":"archive","format":2}\n')
    with pytest.raises(BackstopError) as caught:
        ParquetArchive(tmp_path / "a", create=True)
    assert slug_of(caught) == "store-schema"


def test_a_new_folder_answers_with_nothing(tmp_path: Path) -> None:
    archive = ParquetArchive(tmp_path / "a", create=True)
    assert (archive.check(), list(archive.days())) == (ORIGIN, [])


def test_a_place_that_may_not_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BackstopError) as caught:
        ParquetArchive(tmp_path / "file" / "below", create=True)
    assert slug_of(caught) == "store-unusable"


def test_a_store_is_no_archive_and_an_archive_no_store(tmp_path: Path) -> None:
    store, kept = tmp_path / "store.db", tmp_path / "kept.db"
    SqliteStore(store, agent="clerk", header=header(), clock=SteppingClock()).close()
    SqliteArchive(kept, create=True).close()
    assert (is_archive(store), is_archive(kept), is_archive(tmp_path / "no")) == (
        False,
        True,
        False,
    )
    for create in (True, False):
        with pytest.raises(BackstopError) as caught:
            SqliteArchive(store, create=create)
        assert slug_of(caught) == "store-schema"
    with pytest.raises(BackstopError) as caught:
        SqliteStore(kept, agent="clerk", header=header(), clock=SteppingClock())
    assert slug_of(caught) == "store-schema"


def test_what_is_no_database_is_an_error_and_not_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    path.write_bytes(b"no database at all, whatever its name says" * 30)
    for ask in (lambda: is_archive(path), lambda: SqliteArchive(path, create=False)):
        with pytest.raises(BackstopError) as caught:
            ask()
        assert slug_of(caught) == "store-damaged"


def test_a_row_of_other_types_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    archive = SqliteArchive(path, create=True)
    archive.append(story())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE e AS SELECT * FROM entries")
        db.execute("UPDATE e SET spent = 'many' WHERE seq = 2")
        db.execute("DROP TABLE entries")
        db.execute("ALTER TABLE e RENAME TO entries")
    with pytest.raises(BackstopError) as caught:
        list(archive.read())
    assert slug_of(caught) == "store-unreadable"
    for read in (entry_from, day_from):
        with pytest.raises(BackstopError) as caught:
            read((1, 2), name="it")
        assert slug_of(caught) == "store-unreadable"
