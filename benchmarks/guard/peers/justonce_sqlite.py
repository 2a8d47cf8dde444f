"""justonce: a decorator, SQLite in WAL mode with full syncs, a lease that lapses."""

from __future__ import annotations

import justonce
from justonce.stores import SqliteStore

from benchmarks.guard.work import RUN, TOOL, Guarded, Place, order, tool


def build(place: Place) -> Guarded:
    """As its documentation shows it; variant ``final`` lets no call be made again that raised."""
    engine = justonce.configure(SqliteStore(place.folder / "effects.db"), ttl_seconds=place.lease_s)

    guard = justonce.idempotent(
        key=lambda **arguments: justonce.operation_key(RUN, TOOL, arguments["po_ref"]),
        engine=engine,
        retry_on_failure=place.variant != "final",
    )
    create = guard(tool(place))

    return Guarded(call=lambda ref: create(**order(ref)))
