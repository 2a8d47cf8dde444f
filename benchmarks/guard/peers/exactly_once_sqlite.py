"""exactly-once: a decorator, SQLite in WAL mode, NORMAL: it survives the end of a process only."""

from __future__ import annotations

from typing import Any

import exactly_once

from benchmarks.guard.work import RUN, TOOL, Guarded, Place, order, tool


def build(place: Place) -> Guarded:
    """Variant ``lookup`` probes an orphan whose lease is over."""
    options: dict[str, Any] = {}

    def probe(key: str) -> exactly_once.ProbeResult:
        if place.seen(key.rpartition(":")[2]):
            return exactly_once.ProbeResult(exactly_once.Verdict.COMMITTED, {"ok": True})
        return exactly_once.ProbeResult(exactly_once.Verdict.NOT_COMMITTED)

    if place.variant == "lookup":
        options = {
            "policy": exactly_once.check_then_decide(probe),
            "lease_ttl": place.lease_s,
        }

    guard = exactly_once.once(
        exactly_once.Store.sqlite(str(place.folder / "effects.db")),
        key=lambda **arguments: f"{RUN}:{TOOL}:{arguments['po_ref']}",
        fingerprint=lambda **arguments: arguments,
        **options,
    )
    create = guard(tool(place))

    return Guarded(call=lambda ref: create(**order(ref)))
