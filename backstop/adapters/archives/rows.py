"""Entries as rows of a database, and the questions that SQL answers where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from backstop.core.auditlog import HEADER, SEALED, Entry
from backstop.core.events import OBSERVED, RECORDED
from backstop.core.reckoning import FIGURES, Day
from backstop.errors import BackstopError

COLUMNS: Final = Entry.__struct_fields__
"""The columns of a row, in order."""

HASHED: Final = ("prev", "seq", *COLUMNS[COLUMNS.index("hash") + 1 :])
"""The columns that a hash covers, in the order of `auditlog.hash_of`."""

_IS_EFFECT: Final = "kind = 'effect_committed' OR (kind = 'effect_resolved' AND how = 'committed')"
_WAS_OBSERVED: Final = f"kind = 'answered' AND STARTS_WITH(how, '{OBSERVED}')"
_SUMS: Final = {
    "effects": _IS_EFFECT,
    "repeats": f"kind = 'answered' AND how = '{RECORDED}'",
    "held": f"kind = 'answered' AND how <> '{RECORDED}' AND NOT STARTS_WITH(how, '{OBSERVED}')",
    "observed": _WAS_OBSERVED,
    "breaks": "kind = 'trust_break'",
    "recoveries": "kind = 'recovery' AND how = 'ended'",
}


def days_of(table: str) -> str:
    """The query that answers `reckoning.reckon` in standard SQL: the columns of a `Day`."""
    sums = [f"SUM(CASE WHEN {when} THEN 1 ELSE 0 END) AS {name}" for name, when in _SUMS.items()]
    figures = ", ".join(
        ["COUNT(*) AS events", *sums, "SUM(spent) AS spent, SUM(avoided) AS avoided"]
    )
    return (
        f"SELECT day, {figures} FROM {table} "  # noqa: S608 - of constants, and a place of ours
        f"WHERE kind NOT IN ('{HEADER}', '{SEALED}') GROUP BY day ORDER BY day"
    )


def entry_from(row: Sequence[object], *, name: str) -> Entry:
    """The entry in a row of `COLUMNS`. Raises `BackstopError` (``store-unreadable``)."""
    try:
        return msgspec.convert(dict(zip(COLUMNS, row, strict=True)), Entry)
    except (msgspec.ValidationError, ValueError) as error:
        raise BackstopError(
            f"{name}: a row is not as Backstop writes it ({error}); restore the archive",
            slug="store-unreadable",
        ) from None


def day_from(row: Sequence[object], *, name: str) -> Day:
    """The day in a row of `days_of`. Raises `BackstopError` (``store-unreadable``)."""
    try:
        return msgspec.convert(dict(zip(("day", *FIGURES), row, strict=True)), Day)
    except (msgspec.ValidationError, ValueError) as error:
        raise BackstopError(
            f"{name}: the figures of a day cannot be read ({error}); restore the archive",
            slug="store-unreadable",
        ) from None
