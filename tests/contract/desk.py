"""A desk whose tools act, and whose undos are declared, missing or broken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind
from backstop.core.declaration import Namespace
from backstop.core.effectgate import Place
from backstop.core.trustgraph import TrustGraph
from backstop.guard.claims.undoing import Undos
from backstop.guard.effect import Declared
from backstop.mesh.compensating import Settled, compensate
from backstop.meshports import MeshStore
from tests.contract.bench import AGENT
from tests.contract.deeds import committed, pay
from tests.contract.meshed import judged, leased

NAMESPACE = Namespace(agent=AGENT)
CHAIN = {"order": "", "ship": "order", "mail": "ship"}


def graph(reads: dict[str, str]) -> TrustGraph:
    """Steps, and what each was made from."""
    made = TrustGraph()
    for step, above in reads.items():
        made.put(
            Checkpoint(
                run="r1",
                step=step,
                kind=StepKind.EFFECT,
                output=f"d-{step}",
                producer="p",
                observed_at=0.0,
                deps=tuple(Dep(DepKind.UPSTREAM, one, f"d-{one}") for one in above.split()),
            )
        )
    return made


def order(to: str) -> str:
    return to


@dataclass
class Desk:
    """What was taken back, in order; `undo` is what each step's tool declares for it."""

    taken_back: list[tuple[str, str]] = field(default_factory=list)
    undo: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        taken_back = self.taken_back

        def withdraw(to: str, result: str) -> dict[str, str]:
            taken_back.append((to, result))
            return {"withdrawn": to}

        self.undo = self.undo or withdraw

    @property
    def declared(self) -> Declared:
        return Declared(tool="pay", function=order, undo=self.undo)

    def acts(self, store: MeshStore, step: str, *, undo: str | None = None, epoch: int = 0) -> str:
        """The effect of a step goes out; its key."""
        key = f"key-{step}"
        name = self.declared.undo_name if undo is None else undo
        asked = judged(epoch, place=Place(run="r1", step=step, agent="desk"), undo=name)
        args = msgspec.Raw(msgspec.json.encode({"to": step}))
        claim = store.claim(pay(key=key, args=args), asked)
        store.settle(committed(claim, b'"done"'), claim=claim)  # type: ignore[arg-type]  # granted
        return key

    def compensates(
        self, store: MeshStore, reads: dict[str, str] = CHAIN, *, holder: str = "worker-1"
    ) -> tuple[Settled, ...]:
        """The recovery of the run ends: what nobody asked for again is taken back."""
        return asyncio.run(self.compensating(store, reads, holder=holder))

    async def compensating(
        self, store: MeshStore, reads: dict[str, str] = CHAIN, *, holder: str = "worker-1"
    ) -> tuple[Settled, ...]:
        """`compensates`, for several workers at once."""
        return await compensate(
            store,
            Undos(store, known=lambda: [self.declared]),
            graph(reads),
            lease=leased(store, holder),
            namespace=NAMESPACE,
        )
