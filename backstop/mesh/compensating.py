"""The end of a recovery: what its branch did not ask for again is taken back, or goes to a person.

Each effect's fate is written down before the next one's begins, and each undo is an effect of
its own: whoever does all this again, after a crash at whatever point, does nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from backstop.core.compensation import Fate, Orphan, Task, compensation, fate_of, undoing
from backstop.core.declaration import Namespace
from backstop.core.effectgate import (
    Frozen,
    Lease,
    LeaseLost,
    PastHorizon,
    Precondition,
    StaleEpoch,
    Unverified,
)
from backstop.core.effecttrust import Act, Ruled
from backstop.core.trustgraph import TrustGraph
from backstop.errors import BackstopError
from backstop.meshports import MeshStore, OutEffect, Undoer
from backstop.ports import Conflict, Held, InDoubt, Recorded, Refused

R = TypeVar("R")

_ACTS: Final = {Fate.UNDO: Act.COMPENSATE, Fate.ESCALATE: Act.ESCALATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What became of one effect. `note` is the key of its undo, or why there was none."""

    key: str
    tool: str
    fate: Fate
    note: str


async def compensate(
    store: MeshStore, undoer: Undoer, graph: TrustGraph, *, lease: Lease, namespace: Namespace
) -> tuple[Settled, ...]:
    """Take back what the recovered branch of the lease's run did not ask for again, last one first.

    What cannot be taken back is escalated; what is being done, or is judged anew since trust
    broke again, waits for the next recovery. Raises `BackstopError`: ``stale-lease`` if another
    worker took over, and what the store raises; what was done until then is on record.
    """
    control = await _ask(store, store.control)
    out = await _ask(store, lambda: list(store.out(lease.run)))
    effects = {effect.standing.claimed.key: effect for effect in out}
    orphans = [_orphan(effect, place) for place, effect in enumerate(out)]
    fates: dict[str, Fate] = {}
    settled: list[Settled] = []
    for task in compensation(orphans, graph):
        effect = effects[task.key]
        fate, note = fate_of(task, fates)
        if fate is Fate.UNDO:
            fate, note = await _undone(
                effect, undoer, lease=lease, namespace=namespace, epoch=control.epoch
            )
        fates[task.key] = fate
        if (act := _ACTS.get(fate)) is not None:
            await _rule(store, Ruled(key=task.key, act=act, note=note), lease)
        settled.append(_settled(task, effect, fate, note))
    return tuple(settled)


def _orphan(effect: OutEffect, place: int) -> Orphan:
    claimed = effect.standing.claimed
    return Orphan(
        key=claimed.key,
        step=effect.gated.place.step,
        trust=effect.trust,
        phase=effect.standing.phase,
        undo=effect.gated.undo,
        place=place,
    )


def _settled(task: Task, effect: OutEffect, fate: Fate, note: str) -> Settled:
    return Settled(key=task.key, tool=effect.standing.claimed.tool, fate=fate, note=note)


async def _rule(store: MeshStore, ruled: Ruled, lease: Lease) -> None:
    await _ask(store, lambda: store.rule([ruled], lease=lease))


async def _undone(
    effect: OutEffect, undoer: Undoer, *, lease: Lease, namespace: Namespace, epoch: int
) -> tuple[Fate, str]:
    """Run an undo; the effect's fate, and the undo's key or why it was none."""
    standing = effect.standing
    intent = undoing(
        standing.claimed,
        fence=standing.fence,
        owner=f"{lease.holder}/recovery.{lease.fence}",
        namespace=namespace,
    )
    asked = Precondition(
        place=effect.gated.place, epoch=epoch, lease=lease, undoes=standing.claimed.key
    )
    try:
        answer = await undoer.undo(effect, intent, asked)
    except BackstopError as error:
        if error.slug != "undo-missing":
            raise
        return Fate.ESCALATE, str(error)
    match answer:
        case Recorded():
            return Fate.UNDO, intent.key
        case Held(owner=owner):
            return Fate.WAIT, f"{owner} is at its undo"
        case InDoubt():
            return Fate.ESCALATE, f"nobody knows whether its undo {intent.key[:12]} happened"
        case Refused(error=failure):
            return Fate.ESCALATE, f"its undo {intent.key[:12]} failed: {failure.type}"
        case Conflict():
            return Fate.ESCALATE, f"its undo {intent.key[:12]} is on record as another call"
        case StaleEpoch() | Frozen() | PastHorizon() | Unverified():
            return Fate.WAIT, "trust broke again: the next recovery sees to it"
        case LeaseLost():
            return Fate.WAIT, "another worker recovers this run"


async def _ask(store: MeshStore, ask: Callable[[], R]) -> R:
    """Ask the store; off the event loop where it waits for a network."""
    return await asyncio.to_thread(ask) if store.blocking else ask()
