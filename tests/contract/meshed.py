"""What tests do to the mesh of a store: break trust, judge, and recover."""

from __future__ import annotations

from math import inf

from backstop.core.effectgate import Lease, Place, Precondition, Reach
from backstop.core.effecttrust import Trust
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.meshports import MeshStore
from backstop.ports import Held

STEP = "desk/publish.0"
PLACE = Place(run="r1", step=STEP, agent="desk", upstream=("stats/model.0",))


def judged(
    epoch: int = 0,
    *,
    place: Place = PLACE,
    horizon: float = inf,
    lease: Lease | None = None,
    undo: str = "desk.withdraw",
    undoes: str = "",
) -> Precondition:
    """What a verdict that was VERIFIED in `epoch` asks for."""
    return Precondition(
        place=place, epoch=epoch, horizon=horizon, lease=lease, undo=undo, undoes=undoes
    )


def found(name: str = "b1", *steps: str) -> TrustBreak:
    """A break that a detector found."""
    return TrustBreak(
        id=name,
        seq=100,
        epoch=0,
        detector="evidence age",
        reason="the history snapshot is stale",
        selector=Steps(steps=steps or ("scout/history.0",)),
    )


def breaks(store: MeshStore, name: str = "b1", *steps: str, run: str = "r1") -> int:
    """Trust breaks, and reaches these steps of the run; the epoch that it begins."""
    reach = Reach(run=run, steps=frozenset(steps or (STEP,)))
    return store.break_trust(found(name), run=run, reach=[reach]).epoch


def leased(store: MeshStore, holder: str = "worker-1") -> Lease:
    lease = store.lease("r1", holder, lease_s=30)
    assert not isinstance(lease, Held)
    return lease


def recovers(store: MeshStore, *steps: str) -> int:
    """Everything that was reached is recovered from; the epoch."""
    lease, epoch = leased(store), store.control().epoch
    reach = Reach(run="r1", steps=frozenset(steps or (STEP,)))
    assert store.thaw([reach], lease=lease, epoch=epoch)
    store.release(lease)
    return epoch


def trusts(store: MeshStore, run: str | None = None) -> dict[str, Trust]:
    """How far each effect that passed the gate can be stood by."""
    return {effect.standing.claimed.key: effect.trust for effect in store.out(run)}
