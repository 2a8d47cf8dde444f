"""An audit, as a table and as JSON."""

from __future__ import annotations

from typing import Final

import msgspec

from backstop.core.reckoning import Audit, Day
from backstop.reports.escape import in_json, plain
from backstop.reports.explain import count_of

SCHEMA: Final = "backstop.audit/1"

_HEADS: Final = (
    ("events", "", "Events"),
    ("effects", "", "Effects"),
    ("repeats", "Repeats", "stopped"),
    ("held", "Held", "back"),
    ("breaks", "Trust", "breaks"),
    ("spent", "Tokens", "spent"),
    ("avoided", "Tokens", "avoided"),
)
_DAY: Final = 10
_WIDTH: Final = 9
_UNKNOWN: Final = "no time"


def audit_table(audit: Audit) -> str:
    """What was found, in lines of 80 columns as far as its names allow."""
    lines = [
        f"audit of {plain(audit.agent)}: {audit.kind} {plain(audit.place)}",
        f"verified: {audit.held}",
    ]
    if audit.open_end:
        lines.append("whether its end was taken away is unknown without --high-water")
    lines += ["", _row("", [head for _, head, _ in _HEADS])]
    lines.append(_row("Day (UTC)", [head for *_, head in _HEADS]))
    lines += [_figures(day.day or _UNKNOWN, day) for day in audit.days]
    lines.append(_figures("All", audit.total))
    if audit.total.observed:
        calls = count_of(audit.total.observed, "call")
        lines += ["", f"{calls} went out that the guard, which only observed, would have stopped"]
    return "\n".join(lines) + "\n"


def audit_document(audit: Audit) -> str:
    """What was found, as JSON."""
    told = {
        "schema": SCHEMA,
        "place": audit.place,
        "kind": audit.kind,
        "agent": audit.agent,
        "verified": audit.held,
        "end_vouched_for": not audit.open_end,
        "days": [{"day": day.day or None, **_numbers(day)} for day in audit.days],
        "total": _numbers(audit.total),
    }
    text = in_json(msgspec.json.encode(told).decode())
    return msgspec.json.format(text.encode(), indent=2).decode() + "\n"


def _numbers(day: Day) -> dict[str, int]:
    return {
        "events": day.events,
        "effects": day.effects,
        "repeats_stopped": day.repeats,
        "held_back": day.held,
        "observed_only": day.observed,
        "trust_breaks": day.breaks,
        "recoveries": day.recoveries,
        "input_tokens_spent": day.spent,
        "input_tokens_avoided": day.avoided,
    }


def _figures(name: str, day: Day) -> str:
    return _row(name, [f"{getattr(day, figure):,}" for figure, *_ in _HEADS])


def _row(name: str, cells: list[str]) -> str:
    # A figure that is wider than its column keeps a blank before it.
    told = "".join(f" {cell:>{_WIDTH - 1}}" for cell in cells)
    return f"{name:<{_DAY}}{told}".rstrip()
