"""What a person names with ``mesh apply --with``: it finds its store in the environment."""

from __future__ import annotations

import os
from pathlib import Path

from backstop.adapters.payloads import FolderPayloads
from backstop.clock import SystemClock
from backstop.wiring.stores import open_store
from tests.contract.bench import header
from tests.e2e.mesh.fleet import Fleet

URL = "sqlite:///{}/desk.db"


def opened(folder: Path) -> Fleet:
    """The fleet whose run is in that folder, with the clock of this machine."""
    store = open_store(URL.format(folder), header=header())
    payloads = FolderPayloads(folder / "payloads")
    return Fleet(store=store, clock=SystemClock(), payloads=payloads)


def fleet() -> Fleet:
    """The fleet of the folder that the environment names; the world says something else now."""
    made = opened(Path(os.environ["FLEET"]))
    made.history = "h2"
    return made


nothing = object()
