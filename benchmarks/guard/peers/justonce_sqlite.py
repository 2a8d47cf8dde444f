"""justonce: a decorator, SQLite in WAL mode with full syncs, a lease that lapses."""

from __future__ import annotations

import justonce
from benchmarks.guard.work import RUN, TOOL, Guarded, Order, Place, order
from justonce.stores import SqliteStore


def build(place: Place) -> Guarded:
    """As its documentation shows it."""
    engine = justonce.configure(
        SqliteStore(place.folder / "effects.db"), ttl_seconds=place.lease_s
    )

    @justonce.idempotent(
        key=lambda **arguments: justonce.operation_key(RUN, TOOL, arguments["po_ref"]),
        engine=engine,
    )
    def create(
        vendor_id: str, po_ref: str, quantity: int, unit_price: str, note: str
    ) -> Order:
        return place.act(po_ref)

    return Guarded(call=lambda ref: create(**order(ref)))
