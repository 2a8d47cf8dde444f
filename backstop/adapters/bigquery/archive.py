"""An archive in BigQuery.

Theory of operation: a table has no unique keys, so what keeps an entry from being written twice
is the id of the load job that brings it. The id is worked out from the table and from how far
the table reaches before the job: of all who add to that end, only one gets to run. Everybody
else is told that there is such a job, waits for it, and looks at what stands there now. A job
that failed wrote nothing; the next try has the next id. Nothing is believed because BigQuery
said so: after each job the table is asked how far it reaches, and whether all of it is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

from backstop.adapters.bigquery.faults import PASSING
from backstop.adapters.bigquery.rows import (
    COLUMNS,
    DAYS,
    FAULT,
    FIRST_ODD,
    TIP,
    between,
    day_of_row,
    entry_of_row,
    row_of,
    same_columns,
)
from backstop.adapters.bigquery.service import Pacing, Place, Row, Service, Table
from backstop.core.auditlog import ORIGIN, Entry, Tip, damaged, gap, tip_at, unwritten
from backstop.core.reckoning import FIGURES, Day
from backstop.errors import BackstopError, LedgerError

_BATCH: Final = 8 * 1024 * 1024
"""Bytes of rows that a job brings; a longer row goes alone."""

_WINDOW: Final = 10_000
"""Entries that one query is asked for."""

_TRIES: Final = 4
"""Jobs that one call sets off at one end of a table, where each fails on the other side."""

_IDS: Final = 100
"""Jobs at one end of a table that failed, before somebody has to look."""


class BigQueryArchive:
    """An `Archive` in one table of BigQuery, or of its emulator at `emulator` (``address:port``).

    The dataset must be there. The table is made by the first `append` where it may `create` one;
    before that the archive holds nothing. Where it may not, a place without a table is no archive
    (``store-missing``). It can be asked where it lies, too (`auditports.Reckoner`).
    """

    def __init__(
        self,
        *,
        place: Place,
        create: bool = True,
        emulator: str | None = None,
        pacing: Pacing | None = None,
    ) -> None:
        self._place = place
        self._create = create
        self._service = Service(place=place, emulator=emulator, pacing=pacing or Pacing())
        self._name = self._service.name
        self._found: Table | None = None

    def append(self, entries: Sequence[Entry]) -> Tip:
        """Add entries, in as many jobs as they need; each brings all of its rows or none."""
        table = self._table() or self._made()
        tip = self._tip(table)
        rest = unwritten(entries, tip, self._stored, name=self._name)
        while rest:
            count, rows = self._batch(rest)
            tip = self._loaded(table, rows, tip)
            if tip == tip_at(rest[count - 1]):
                rest = rest[count:]
            else:  # somebody else was there first
                rest = unwritten(rest, tip, self._stored, name=self._name)
        return tip

    def read(self, after: int = 0) -> Iterator[Entry]:
        """The entries numbered higher than `after`, up to where the archive reaches now.

        Raises `LedgerError` (``archive-gap``, ``archive-damaged``) where one of them is not told.
        """
        last = self.head().seq
        for first in range(after + 1, last + 1, _WINDOW):
            yield from self._stored(first, min(first + _WINDOW - 1, last))

    def head(self) -> Tip:
        """How far it reaches. Raises `LedgerError` where a number is missing, or is there twice."""
        table = self._table()
        return ORIGIN if table is None else self._tip(table)

    def check(self) -> Tip:
        """How far it reaches, with each number, link and hash worked out anew, in BigQuery."""
        tip = self.head()
        if tip == ORIGIN:
            return tip
        for (found,) in self._ask(FAULT, cells=1):
            raise damaged(
                self._name,
                self._number(found),
                "it does not follow the one before, or is not as it was archived",
            )
        return tip

    def days(self) -> Iterator[Day]:
        """What is on record of each day, worked out in BigQuery."""
        if self._table() is None:
            return
        for row in self._ask(DAYS, cells=1 + len(FIGURES)):
            try:
                yield day_of_row(row)
            except ValueError:
                raise self._odd(row) from None

    def close(self) -> None:
        """Let go of the connections."""
        self._service.close()

    def _table(self) -> Table | None:
        if self._found is None:
            self._found = self._checked(self._service.table())
        if self._found is None and not self._create:
            raise BackstopError(
                f"{self._name}: there is no such table; name the one that was archived in",
                slug="store-missing",
            )
        return self._found

    def _made(self) -> Table:
        self._service.make_table(COLUMNS, clustered="seq")
        table = self._table()
        if table is None:
            raise BackstopError(
                f"{self._name}: the table was made, and is not there; somebody removes it",
                slug="store-missing",
            )
        return table

    def _checked(self, table: Table | None) -> Table | None:
        if table is not None and not same_columns(table.schema.fields):
            raise BackstopError(
                f"{self._name}: a table with other columns than those of an archive; name another "
                "table, or use the Backstop that wrote this one",
                slug="store-schema",
            )
        return table

    def _tip(self, table: Table) -> Tip:
        told = self._ask(TIP, cells=5, table=table)
        if len(told) != 1:
            raise self._odd(told)
        rows, numbers, lowest, highest = map(self._number, told[0][:4])
        if not rows:
            return ORIGIN
        if (lowest, highest, numbers) != (1, rows, rows):
            raise self._first_odd()
        return Tip(seq=highest, hash=told[0][4] or "")

    def _first_odd(self) -> BackstopError:
        for found, last in self._ask(FIRST_ODD, cells=2):
            seq, before = self._number(found), self._number(last)
            if seq > before + 1:
                return gap(self._name, before + 1, seq)
            return damaged(self._name, seq, "it is there twice, or has no number of an entry")
        return self._odd("numbers that are not whole, of which none is odd")

    def _stored(self, first: int, last: int) -> Iterator[Entry]:
        """The entries of these numbers, each of them, in order."""
        due = first
        for row in self._service.query(self._sql(between(first, last)), location=self._location()):
            entry = entry_of_row(row, name=self._name, place=due)
            if entry.seq > due:
                raise gap(self._name, due, entry.seq)
            if entry.seq != due:
                raise damaged(self._name, entry.seq, "it is there twice")
            yield entry
            due += 1
        if due <= last:
            raise gap(self._name, due, last + 1)

    def _batch(self, entries: Sequence[Entry]) -> tuple[int, bytes]:
        """As many of the entries as go into one job, and their rows."""
        rows = bytearray()
        for count, entry in enumerate(entries):
            row = row_of(entry, name=self._name)
            if rows and len(rows) + len(row) > _BATCH:
                return count, bytes(rows)
            rows += row
        return len(entries), bytes(rows)

    def _loaded(self, table: Table, rows: bytes, tip: Tip) -> Tip:
        """How far the archive reaches once these rows, or somebody else's, stand behind `tip`."""
        failed = 0
        for number in range(_IDS):
            job = self._job(table, tip, number)
            ended = self._service.load(job, rows, COLUMNS, location=table.location)
            # Looked at after a failure, too: whoever failed may not be the only one.
            if (reached := self._tip(table)) != tip:
                return reached
            if ended.fault is None:
                raise self._removed(job, tip)
            if ended.fresh:
                failed += 1
                if failed == _TRIES or ended.fault.meaning not in PASSING:
                    raise self._service.error(ended.fault)
                self._service.pause(failed)
        raise BackstopError(
            f"{self._name}: {_IDS} jobs after entry {tip.seq:,} failed; look at what they say "
            "(bq ls -j), and archive in another table",
            slug="store-refused",
        )

    def _removed(self, job: str, tip: Tip) -> LedgerError:
        return LedgerError(
            f"{self._name}: job {job} brought entries after entry {tip.seq:,}, and they are not "
            "there: rows were removed. Restore the table, or archive in another one.",
            slug="archive-rollback",
        )

    def _job(self, table: Table, tip: Tip, number: int) -> str:
        """The id of the job that adds to a table, made at that time, which reaches to `tip`."""
        told = f"{self._place}\n{table.creation_time}\n{tip.seq}\n{tip.hash}\n{number}"
        return f"backstop_{hashlib.sha256(told.encode()).hexdigest()[:40]}"

    def _ask(self, sql: str, *, cells: int, table: Table | None = None) -> list[Row]:
        """The rows, of so many cells each, that a question of our own is answered with."""
        location = table.location if table else self._location()
        rows = list(self._service.query(self._sql(sql), location=location))
        if any(len(row) != cells for row in rows):
            raise self._odd(rows)
        return rows

    def _sql(self, text: str) -> str:
        place = self._place
        return text.replace("{table}", f"{place.project}.{place.dataset}.{place.table}")

    def _location(self) -> str:
        table = self._table()
        return table.location if table else ""

    def _number(self, cell: str | None) -> int:
        try:
            return int(cell or 0)
        except ValueError:
            raise self._odd(cell) from None

    def _odd(self, told: object) -> BackstopError:
        return BackstopError(
            f"{self._name}: an answer to our own question makes no sense ({told!r:.100}); is this "
            "BigQuery (BIGQUERY_EMULATOR_HOST)?",
            slug="store-refused",
        )
