"""The store of a run, and the names of what is in it."""

from __future__ import annotations

import hashlib
import os
from importlib import import_module
from pathlib import Path

from backstop.clock import SystemClock
from backstop.core.canon import CANON_VERSION
from backstop.core.events import FORMAT, Header
from backstop.ports import Store
from benchmarks.hammer.plan import Kept, Run

AGENT = "hammer"
STEP = "s0"


def load(kept: Kept) -> None:
    """Import what a store needs, once and before any fork: no worker waits for it then."""
    import_module(f"backstop.adapters.{'sqlite' if kept is Kept.SQLITE else 'firestore.store'}")


def opened(run: Run, folder: Path) -> Store:
    """The store of a run, for one process. Firestore is the emulator's, never the service."""
    header = Header(format=FORMAT, agent=AGENT, canon=CANON_VERSION, guarded=True)
    is_alive = None if run.owners_seen else _nobody_can_see
    if run.kept is Kept.SQLITE:
        from backstop.adapters.sqlite.store import SqliteStore

        return SqliteStore(
            folder / "ledger.db",
            agent=AGENT,
            header=header,
            clock=SystemClock(),
            is_alive=is_alive,
        )
    from backstop.adapters.firestore.store import FirestoreStore, Options

    return FirestoreStore(
        project="hammer",
        database="(default)",
        collection=f"hammer-{folder.name}",
        agent=AGENT,
        header=header,
        clock=SystemClock(),
        emulator=os.environ["FIRESTORE_EMULATOR_HOST"],
        options=Options(is_alive=is_alive, patience_s=20),
    )


def _nobody_can_see(_owner: str) -> None:
    return None


def key_of(tick: str) -> str:
    """The idempotency key of a tick's effect."""
    return hashlib.sha256(tick.encode()).hexdigest()
