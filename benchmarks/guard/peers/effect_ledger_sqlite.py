"""effect-ledger: an executor, a connection a transaction, full syncs; doubts wait for a person."""

from __future__ import annotations

from effect_ledger import EffectExecutor
from effect_ledger.models import Operation

from benchmarks.guard.work import RUN, TOOL, Guarded, Order, Place, Unfinished, order


def build(place: Place) -> Guarded:
    """The operation's id is the host's to choose: run, tool and reference."""
    executor = EffectExecutor(place.folder / "effects.db", scope=RUN)

    def create(operation: Operation) -> Order:
        return place.act(operation.request["po_ref"])

    def call(ref: str) -> object:
        done = executor.execute(f"{TOOL}:{ref}", TOOL, order(ref), create)
        if done.state != "completed":
            raise Unfinished(done.state)
        return done.result

    return Guarded(call=call)
