"""What is hammered: runs of workers over ticks, and how cruel each is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Mode(StrEnum):
    """What a worker can do about a doubt; `NAIVE` looks, runs and records, and is the control."""

    NONE = "none"
    PROBE = "probe"
    KEYED = "keyed"
    NAIVE = "naive"


class Kept(StrEnum):
    """Where the ledger is."""

    SQLITE = "sqlite"
    FIRESTORE = "firestore"


POINTS: Final = (
    "before claim",
    "after claim",
    "before effect",
    "after effect",
    "after execute",
    "after commit",
)
"""Where a worker may be killed or stopped by its own hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. Chances are per point or per call, times are seconds.

    `owners_seen` off hides from the store whether an owner runs, so that only leases tell.
    """

    mode: Mode
    kept: Kept
    workers: int
    ticks: int
    seed: int
    owners_seen: bool = True
    deliveries: int = 3
    kill: float = 0.015
    stop: float = 0.004
    raises: float = 0.02
    kill_every_s: float = 0.4
    stopped_s: float = 0.6
    lease_s: float = 0.2
    settle_s: float = 0.05
    call_s: float = 0.002

    @property
    def name(self) -> str:
        """What the run is called in a table."""
        seen = "" if self.owners_seen or self.mode is Mode.NAIVE else ", leases only"
        return f"{self.mode.value} on {self.kept.value}, {self.workers} workers{seen}"


OURS: Final = (Mode.NONE, Mode.PROBE, Mode.KEYED)


def short(kept: Kept, seed: int) -> list[Run]:
    """Every mode, and again where only leases tell, in half a minute or so."""
    ticks, hidden = (80, 60) if kept is Kept.SQLITE else (30, 30)
    return [
        Run(
            mode=mode,
            kept=kept,
            workers=8,
            ticks=ticks if seen else hidden,
            seed=seed + n,
            owners_seen=seen,
            kill_every_s=_kill_every_s(kept),
        )
        for n, (seen, mode) in enumerate((seen, mode) for seen in (True, False) for mode in OURS)
    ]


def _kill_every_s(kept: Kept) -> float:
    return 0.4 if kept is Kept.SQLITE else 1.5  # a new worker has to connect first


def long(kept: Kept, seed: int) -> list[Run]:
    """Every mode with 8, 16 and 32 workers."""
    ticks = 1000 if kept is Kept.SQLITE else 200
    return [
        Run(
            mode=mode,
            kept=kept,
            workers=workers,
            ticks=ticks,
            seed=seed + n,
            owners_seen=seen,
            kill_every_s=_kill_every_s(kept),
        )
        for n, (workers, seen, mode) in enumerate(
            (workers, seen, mode)
            for workers in (8, 16, 32)
            for seen in (True, False)
            for mode in OURS
            if seen or workers == 16
        )
    ]


def control(seed: int) -> list[Run]:
    """The control: a worker that looks, runs and records. It must be found out."""
    return [Run(mode=Mode.NAIVE, kept=Kept.SQLITE, workers=8, ticks=80, seed=seed)]
