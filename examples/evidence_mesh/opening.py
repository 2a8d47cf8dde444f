"""The desk's run in a folder: its store, and what its steps left."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Final

from backstop.adapters.payloads import FolderPayloads
from backstop.wiring.stores import open_store
from examples.evidence_mesh.desk import Desk, Pins, header
from examples.evidence_mesh.outside import World

LATE_S: Final = 600
"""How long the orchestrator takes: longer than the history snapshot stays fresh."""
OTHERWISE: Final = "340 shifts, rate=0.64"


def opened(folder: Path, world: World, pins: Pins) -> Desk:
    """A desk whose store is in a folder."""
    store = open_store(f"sqlite:///{folder}/desk.db", header=header(), clock=world.clock)
    payloads = FolderPayloads(folder / "payloads")
    return Desk(store=store, payloads=payloads, world=world, pins=pins)


def quiet() -> None:
    """The framework warns of its own experiments, and logs each attempt that ends early."""
    warnings.simplefilter("ignore")
    logging.getLogger("google_adk").setLevel(logging.CRITICAL)
