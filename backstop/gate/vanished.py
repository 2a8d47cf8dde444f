"""Tools that a version does not have, and whose recorded calls no finding speaks of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from backstop.core.history import Outcome, Row

_UNDECIDED: Final = frozenset({Outcome.IN_DOUBT, Outcome.OPEN})
_RUNS_SHOWN: Final = 5


def vanished(rows: Iterable[Row], known: Collection[str] | None) -> Iterator[str]:
    """What is to be said of each tool that was called and is not `known`; None: nobody can tell.

    A call that went out is MISSING. One of which nothing says whether it did is not (G2), and
    counts among those in doubt without a name.
    """
    runs: dict[str, dict[str, None]] = {}
    for row in rows:
        if known is not None and row.tool not in known and row.outcome in _UNDECIDED:
            runs.setdefault(row.tool, {})[row.run] = None
    for tool, called in sorted(runs.items()):
        shown = ", ".join(list(called)[:_RUNS_SHOWN])
        more = f" and {len(called) - _RUNS_SHOWN} more" if len(called) > _RUNS_SHOWN else ""
        yield f"{tool} is no tool of this version; calls of it are in doubt in run {shown}{more}"
