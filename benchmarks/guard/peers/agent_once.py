"""agent-once: a decorator, SQLite in WAL mode with full syncs, `verify` for doubts."""

from __future__ import annotations

import once

from benchmarks.guard.work import RUN, TOOL, Guarded, Order, Place, order, tool


def build(place: Place) -> Guarded:
    """Variant ``lookup`` verifies what is unknown or older than the lease."""
    lookup = place.variant == "lookup"
    guard = once.Once(place.folder / "once.db", stale_after=place.lease_s if lookup else None)

    def verify(_key: str, arguments: Order) -> object:
        return {"ok": True} if place.seen(arguments["po_ref"]) else once.NOT_HAPPENED

    create = guard.tool(name=TOOL, verify=verify if lookup else None)(tool(place))

    def call(ref: str) -> object:
        with guard.scope(RUN):
            return create(**order(ref))

    return Guarded(call=call)
