"""DBOS: steps of a workflow, checkpointed in SQLite.

Speed is that of a step in a workflow of many, so the workflow's own rows cost next to nothing.
Variant ``wal`` is not what DBOS ships: the journal mode is set by hand, in its favour.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from time import perf_counter

from dbos import DBOS, SetWorkflowID

from benchmarks.guard.work import Guarded, Order, Place, order, tool


def build(place: Place) -> Guarded:
    """A launched DBOS; what an earlier process left pending is recovered by the launch."""
    file = place.folder / "dbos.sqlite"
    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{file}",
            "log_level": "CRITICAL",
            "application_version": "1",
        }
    )

    create = DBOS.step()(tool(place))

    @DBOS.workflow()
    def one(ref: str) -> Order:
        return create(**order(ref))

    @DBOS.workflow()
    def several(refs: list[str]) -> list[float]:
        spent = []
        for ref in refs:
            start = perf_counter()
            create(**order(ref))
            spent.append(perf_counter() - start)
        return spent

    DBOS.launch()
    if place.variant == "wal":
        with sqlite3.connect(file) as database:
            database.execute("PRAGMA journal_mode=WAL")

    def call(ref: str) -> object:
        with SetWorkflowID(ref):
            return one(ref)

    def many(refs: Sequence[str]) -> list[float]:
        with SetWorkflowID(f"several-{refs[0]}"):
            return several(list(refs))

    return Guarded(call=call, many=many)
