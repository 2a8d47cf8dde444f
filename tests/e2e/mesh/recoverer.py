"""A worker that recovers a run in a process of its own, and can be stopped in the middle."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Namespace
from backstop.core.events import FORMAT, Header
from backstop.errors import BackstopError
from backstop.guard.claims.undoing import Undos
from backstop.mesh.compensating import compensate
from backstop.ports import Held
from backstop.wiring.stores import open_store
from tests.contract.desk import Desk, graph

LEASE_S = 1.0
"""Long enough to begin in, and soon over."""

STOPPED_S = 2.0
"""How long an undo takes in a process that is to be stopped in it."""


def withdraw(to: str) -> None:
    """The effect is taken back in the world, which keeps a diary of it."""
    with Path(os.environ["DIARY"]).open("a", encoding="utf-8") as diary:
        diary.write(f"{to}\n")
    if SLOW:
        tell("undoing")
        time.sleep(STOPPED_S)


SLOW = False


def tell(word: str) -> None:
    """Say to whoever started this process how far it is."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main(url: str) -> str:
    """Recover; how that ended, in a word."""
    global SLOW  # noqa: PLW0603 - the function's home is the module that tests import
    SLOW = True
    header = Header(format=FORMAT, agent="clerk", canon=CANON_VERSION, guarded=True)
    store = open_store(url, header=header)
    lease = store.lease("r1", "worker-1", lease_s=LEASE_S)
    if isinstance(lease, Held):
        return "held"
    undos = Undos(store, known=lambda: [Desk(undo=withdraw).declared])
    steps = graph({"order": "", "ship": "order"})
    try:
        asyncio.run(
            compensate(store, undos, steps, lease=lease, namespace=Namespace(agent="clerk"))
        )
    except BackstopError as error:
        return error.slug
    return "done"


if __name__ == "__main__":
    from tests.e2e.mesh import recoverer  # its functions are at home there, not in `__main__`

    recoverer.tell(recoverer.main(sys.argv[1]))
