"""The table of an archive, and the questions that are put to it in SQL.

A row is an entry. Nothing in BigQuery keeps numbers unique or links whole: `TIP` and `FAULT` are
how a gap, a row that is there twice and a changed one show. They join each row to the one before
by its number, in place of a window over all rows, which one machine would have to sort. Names of
columns stand in backticks: `at` and `hash` are words of the language.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from backstop.adapters.bigquery.service import Column, Row
from backstop.core.auditlog import HEADER, SEALED, Entry, damaged
from backstop.core.events import OBSERVED, RECORDED
from backstop.core.reckoning import FIGURES, Day

_NUMBERS: Final = frozenset({"seq", "spent", "avoided"})
_NAMES: Final = Entry.__struct_fields__

COLUMNS: Final = tuple(
    Column(name=name, type="INTEGER" if name in _NUMBERS else "STRING", mode="REQUIRED")
    for name in _NAMES
)
"""The columns of the table: the fields of an entry."""

_HASHED: Final = ", '\\n', ".join(
    f"CAST(it.`{name}` AS STRING)" if name in _NUMBERS else f"it.`{name}`"
    for name in ("prev", "seq", *(name for name in _NAMES if name not in {"prev", "seq", "hash"}))
)
_EVENT: Final = f"kind NOT IN ('{HEADER}', '{SEALED}')"

TIP: Final = """
SELECT COUNT(*), COUNT(DISTINCT seq), MIN(seq), MAX(seq), MAX_BY(`hash`, seq) FROM `{table}`
"""
"""How many rows there are, how many numbers, the lowest and highest, and the hash of that."""

FIRST_ODD: Final = """
SELECT seq, before
FROM (SELECT seq, LAG(seq) OVER (ORDER BY seq) AS before FROM `{table}`)
WHERE seq != IFNULL(before, 0) + 1
ORDER BY seq LIMIT 1
"""
"""The first row whose number is not the next one, and the number before it."""

FAULT: Final = f"""
SELECT it.seq
FROM `{{table}}` AS it LEFT JOIN `{{table}}` AS before ON before.seq = it.seq - 1
WHERE it.prev != IFNULL(before.`hash`, '')
  OR it.`hash` != TO_HEX(SHA256(CONCAT({_HASHED})))
ORDER BY it.seq LIMIT 1
"""  # noqa: S608 - our own words only
"""The first row that does not follow the one before, or is not what it was."""

DAYS: Final = f"""
SELECT day,
  COUNT(*),
  COUNTIF(kind = 'effect_committed' OR (kind = 'effect_resolved' AND how = 'committed')),
  COUNTIF(kind = 'answered' AND how = '{RECORDED}'),
  COUNTIF(kind = 'answered' AND how != '{RECORDED}' AND NOT STARTS_WITH(how, '{OBSERVED}')),
  COUNTIF(kind = 'answered' AND STARTS_WITH(how, '{OBSERVED}')),
  COUNTIF(kind = 'trust_break'),
  COUNTIF(kind = 'recovery' AND how = 'ended'),
  SUM(spent),
  SUM(avoided)
FROM `{{table}}` WHERE {_EVENT} GROUP BY day ORDER BY day
"""  # noqa: S608 - our own words only
"""The figures of `reckoning.reckon`, in the order of their names."""


def between(first: int, last: int) -> str:
    """The query for the entries of these numbers, both included, in order."""
    columns = ", ".join(f"`{name}`" for name in _NAMES)
    where = f"WHERE seq BETWEEN {first:d} AND {last:d} ORDER BY seq"
    return f"SELECT {columns} FROM `{{table}}` {where}"  # noqa: S608 - numbers of our own


def row_of(entry: Entry, *, name: str) -> bytes:
    """An entry as a line of JSON. Raises `LedgerError` (archive-damaged) for bytes of no text."""
    try:
        told = {each: getattr(entry, each) for each in _NAMES}
        return msgspec.json.encode({**told, "line": entry.line.decode()}) + b"\n"
    except UnicodeError:
        raise damaged(name, entry.seq, "its line is no text") from None


def entry_of_row(row: Row, *, name: str, place: int) -> Entry:
    """The entry that a row holds, which was asked for at this `place`.

    Raises `LedgerError` (archive-damaged) for a row that holds none.
    """
    values = dict(zip(_NAMES, row, strict=False))
    line = values.pop("line", None)
    try:
        return msgspec.convert(
            {**values, "line": None if line is None else line.encode()}, Entry, strict=False
        )
    except (msgspec.ValidationError, UnicodeError) as error:
        raise damaged(name, place, f"what BigQuery tells of it is no entry ({error})") from None


def day_of_row(row: Row) -> Day:
    """The figures in a row of `DAYS`. Raises `ValueError` for a row of another shape."""
    day, *figures = row
    numbers = (int(figure or 0) for figure in figures)
    return Day(day=day or "", **dict(zip(FIGURES, numbers, strict=True)))


def same_columns(found: Sequence[Column]) -> bool:
    """Whether a table has these columns and no others, in whatever order."""
    spelled = {"INT64": "INTEGER"}
    told = {(each.name, spelled.get(each.type, each.type), each.mode) for each in found}
    return told == {(each.name, each.type, each.mode) for each in COLUMNS}
