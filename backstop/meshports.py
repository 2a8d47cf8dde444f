"""What the mesh needs of a store beside the ledger: its control state, one recovery at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from backstop.core.effectgate import Control, Lease, Precondition, Reach
from backstop.core.effecttrust import Gated, Ruled, Trust
from backstop.core.events import Checkpointed, EffectClaimed
from backstop.core.trustbreak import TrustBreak
from backstop.ports import Answer, Held, Standing, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class OutEffect:
    """An effect that passed the gate: where it stands, how far it can be stood by, its result."""

    standing: Standing
    gated: Gated
    trust: Trust


class TrustKeeper(Protocol):
    """Keeps the trust breaks of a ledger's mesh, and what they froze."""

    def control(self) -> Control:
        """The control state, as it was at one instant."""
        ...

    def break_trust(self, found: TrustBreak, *, run: str, reach: Sequence[Reach]) -> Control:
        """Put a break on record for good, freeze what it reaches, and begin an epoch, all at once.

        It is an event of `run`, too. Told again, by its id, it changes nothing. Raises
        `BackstopError` (``trust-break``) for one that names nothing.
        """
        ...

    def out(self, run: str | None = None) -> Iterator[OutEffect]:
        """The effects of a run, or of all, that passed the gate, oldest first."""
        ...


class Recovering(Protocol):
    """Tells who recovers a run."""

    def recovering(self, run: str) -> Lease | None:
        """The lease on a run that is in force; None if nobody recovers it, or it has lapsed."""
        ...


class Recoveries(Protocol):
    """Sees to it that a run is recovered by one worker at a time."""

    def lease(
        self, run: str, holder: str, *, lease_s: float, held: Lease | None = None
    ) -> Lease | Held:
        """Take the right to recover a run for `lease_s` seconds, or go on with the one `held`.

        What has lapsed, or is the same holder's, is taken over under a higher fence.
        """
        ...

    def rule(self, ruled: Sequence[Ruled], *, lease: Lease | None) -> None:
        """Say what becomes of effects in which trust broke: of all of them, or of none.

        Without a `lease` only what a person decides is accepted. Raises `BackstopError`:
        ``stale-lease`` if it was taken over, ``effect-trust`` for what cannot be done.
        """
        ...

    def thaw(self, reach: Sequence[Reach], *, lease: Lease, epoch: int) -> bool:
        """Let go of what was frozen up to `epoch`; False, and nothing done, if trust broke since.

        Raises `BackstopError` (``stale-lease``).
        """
        ...

    def release(self, lease: Lease) -> None:
        """Give the right back; one that was taken over is not ours to give."""
        ...


class Attempts(Protocol):
    """Keeps what is made again while a run is recovered."""

    def record(self, made: Checkpointed, *, lease: Lease) -> None:
        """Add a checkpoint that was made under `lease`; its `at` is set here.

        Raises `BackstopError` (``stale-lease``) if that was taken over: whoever did makes the same
        attempt, and of two records of one nobody knows which holds.
        """
        ...


class Undoer(Protocol):
    """Takes effects back."""

    async def undo(self, effect: OutEffect, intent: EffectClaimed, asked: Precondition) -> Answer:
        """Run the effect's declared undo once, as the claimed effect `intent`.

        Raises `BackstopError` (``undo-missing``) where nobody here has that function, or it
        cannot be called with what is on record.
        """
        ...


class MeshStore(Store, TrustKeeper, Recovering, Recoveries, Attempts, Protocol):
    """All that an adapter of a store offers, the mesh's part included."""
