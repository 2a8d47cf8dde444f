"""The questions that an audit answers, by day in UTC: a pure function of entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from backstop.core.auditlog import Entry
from backstop.core.events import OBSERVED, RECORDED

_KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("effect_resolved", "committed"): "effects",
    ("answered", RECORDED): "repeats",
    ("recovery", "ended"): "recoveries",
}
_ANY: Final[Mapping[str, str]] = {
    "effect_committed": "effects",
    "trust_break": "breaks",
}


class Day(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is on record of one day; `day` is empty for events whose time cannot be read.

    `effects` went out. `repeats` are calls that were answered with what was on record, in place
    of being made again; `held` those that were held back otherwise (another was at it, in doubt,
    a conflict, or withheld by the mesh); `observed` those that a guard which only observes let
    pass, where it would have done one or the other. `breaks` are breaks of trust, `recoveries`
    came to their end; `spent` and `avoided` are input tokens, by their receipts.
    """

    day: str
    events: int = 0
    effects: int = 0
    repeats: int = 0
    held: int = 0
    observed: int = 0
    breaks: int = 0
    recoveries: int = 0
    spent: int = 0
    avoided: int = 0


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What was answered of the ledger of `agent` that lies at `place`.

    `kind` is ``ledger`` for a file, ``store`` or ``archive``. `held` says in a part of a sentence
    what it was held to before anything was counted, and `open_end` that nobody can tell whether
    later entries were taken away.
    """

    place: str
    kind: str
    agent: str
    held: str
    open_end: bool
    days: tuple[Day, ...]
    total: Day


FIGURES: Final = Day.__struct_fields__[1:]
"""The names of the figures of a day, in order."""


def reckon(entries: Iterable[Entry]) -> list[Day]:
    """The figures of each day that has events, in order of the days."""
    days: dict[str, dict[str, int]] = {}
    for entry in entries:
        if not entry.is_event:
            continue
        sums = days.setdefault(entry.day, dict.fromkeys(FIGURES, 0))
        sums["events"] += 1
        sums["spent"] += entry.spent
        sums["avoided"] += entry.avoided
        if figure := _counted(entry.kind, entry.how):
            sums[figure] += 1
    return [Day(day=day, **days[day]) for day in sorted(days)]


def total(days: Iterable[Day]) -> Day:
    """All days in one, whose `day` is empty."""
    told = list(days)
    return Day(day="", **{name: sum(getattr(one, name) for one in told) for name in FIGURES})


def _counted(kind: str, how: str) -> str:
    """The figure that an event counts for; empty for none."""
    if figure := _ANY.get(kind) or _KINDS.get((kind, how)):
        return figure
    if kind != "answered":
        return ""
    return "observed" if how.startswith(OBSERVED) else "held"
