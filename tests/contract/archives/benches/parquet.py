"""An archive in a folder of Parquet files of the test's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from backstop.adapters.archives.parquet import ParquetArchive
from backstop.adapters.archives.rows import COLUMNS
from backstop.core.auditlog import Entry
from tests.contract.archives.bench import ArchiveBench

MARKS: tuple[pytest.MarkDecorator, ...] = ()


@contextmanager
def bench(request: pytest.FixtureRequest) -> Iterator[ArchiveBench]:
    folder: Path = request.getfixturevalue("tmp_path") / "it's an archive"

    def put(entries: Sequence[Entry]) -> None:
        for file in folder.glob("*.parquet"):
            file.unlink()
        with duckdb.connect() as db:
            types = {"seq": "BIGINT", "spent": "BIGINT", "avoided": "BIGINT"}
            columns = ", ".join(f'"{name}" {types.get(name, "VARCHAR")}' for name in COLUMNS)
            db.execute(f"CREATE TABLE t ({columns})")
            for entry in entries:
                row = [getattr(entry, name) for name in COLUMNS[:-1]]
                holes = ", ".join("?" * len(COLUMNS))
                db.execute(f"INSERT INTO t VALUES ({holes})", [*row, entry.line.decode()])  # noqa: S608
            if entries:
                place = str(folder / "entries-0000000000000001.parquet").replace("'", "''")
                db.execute(f"COPY t TO '{place}' (FORMAT parquet)")

    yield ArchiveBench(
        archive=ParquetArchive(folder, create=True),
        reopen=lambda: ParquetArchive(folder, create=False),
        put=put,
        down=lambda: shutil.rmtree(folder),
    )
