"""call4agents: a decorator, SQLite in WAL mode with full syncs, `reconcile` for doubts."""

from __future__ import annotations

from typing import Any

import call4agents

from benchmarks.guard.work import RUN, TOOL, Guarded, Order, Place, order, tool


def build(place: Place) -> Guarded:
    """Variant ``lookup`` reconciles what is in doubt."""
    call4agents.init(str(place.folder / "ledger.sqlite"))
    options: dict[str, Any] = {"wait": min(2.0, place.lease_s)}

    def reconcile(*, po_ref: str, **_: object) -> Order | None:
        return {"ok": True} if place.seen(po_ref) else None

    if place.variant == "lookup":
        options["reconcile"] = reconcile

    create = call4agents.effect(name=TOOL, **options)(tool(place))

    def call(ref: str) -> object:
        with call4agents.run(RUN):
            return create(**order(ref))

    return Guarded(call=call)
