"""Who takes part, how each keeps what it knows, and what ours have to reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

POWER: Final = "power cut"
PROCESS: Final = "process crash"
SERVICE: Final = "whatever befalls the worker"
NOTHING: Final = "nothing"

PEERS: Final = "benchmarks.guard.peers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One guard in one setting.

    `survives` is what a claim that was granted outlives. `service` is the server that it
    stores into: ``moto``, ``firestore`` or none. `calls` are as many as one turn takes, after
    `warm` that do not count.
    """

    module: str
    variant: str = ""
    survives: str = POWER
    service: str = ""
    calls: int = 60
    warm: int = 40

    @property
    def is_ours(self) -> bool:
        """Does it run in the project's own environment?"""
        return not self.module.startswith(PEERS)


OURS: Final = "benchmarks.guard.ours"

CONTENDERS: Final[dict[str, Contender]] = {
    "backstop sqlite": Contender(module=OURS, variant="sqlite"),
    "backstop sqlite +lookup": Contender(module=OURS, variant="sqlite+lookup"),
    "agent-once": Contender(module=f"{PEERS}.agent_once"),
    "agent-once +lookup": Contender(module=f"{PEERS}.agent_once", variant="lookup"),
    "call4agents": Contender(module=f"{PEERS}.call4agents_effect"),
    "call4agents +lookup": Contender(module=f"{PEERS}.call4agents_effect", variant="lookup"),
    "justonce": Contender(module=f"{PEERS}.justonce_sqlite"),
    "justonce +final": Contender(module=f"{PEERS}.justonce_sqlite", variant="final"),
    "effect-ledger": Contender(module=f"{PEERS}.effect_ledger_sqlite"),
    "dbos step": Contender(module=f"{PEERS}.dbos_step"),
    "dbos step, WAL by hand": Contender(module=f"{PEERS}.dbos_step", variant="wal"),
    "backstop sqlite, process": Contender(module=OURS, variant="process", survives=PROCESS),
    "exactly-once": Contender(module=f"{PEERS}.exactly_once_sqlite", survives=PROCESS),
    "exactly-once +lookup": Contender(
        module=f"{PEERS}.exactly_once_sqlite", variant="lookup", survives=PROCESS
    ),
    "backstop firestore": Contender(
        module=OURS, variant="firestore", service="firestore", survives=SERVICE, warm=1_000
    ),  # the emulator is Java: it takes about so many calls until it runs as fast as it will
    "backstop firestore +lookup": Contender(
        module=OURS, variant="firestore+lookup", service="firestore", survives=SERVICE
    ),
    "powertools dynamodb": Contender(
        module=f"{PEERS}.powertools_dynamodb", service="moto", survives=SERVICE, calls=20
    ),
    "backstop memory": Contender(module=OURS, variant="memory", survives=NOTHING),
}

FULL: Final = (
    "backstop sqlite",
    "agent-once",
    "call4agents",
    "justonce",
    "effect-ledger",
    "dbos step",
    "dbos step, WAL by hand",
)
CRASH: Final = ("backstop sqlite, process", "exactly-once")
SHARED: Final = ("backstop firestore", "powertools dynamodb")
LOCAL: Final = ("backstop memory",)

RACES: Final = (FULL, CRASH, SHARED, LOCAL)
"""Contenders of like durability, ours first: they are set against each other."""

AT_MOST: Final[dict[str, float]] = {
    "agent-once": 0.55,
    "call4agents": 0.55,
    "dbos step": 0.3,
    "exactly-once": 1.0,
    "powertools dynamodb": 0.2,
}
"""Our time as a share of this contender's, at most."""

AT_MOST_MS: Final[dict[str, float]] = {"backstop firestore": 2.0}
AT_MOST_MS_AGAIN: Final[dict[str, float]] = {"backstop sqlite": 0.05}

HIT_BY_INCIDENTS: Final = (
    "backstop sqlite",
    "backstop sqlite +lookup",
    "backstop firestore",
    "backstop firestore +lookup",
    "agent-once",
    "agent-once +lookup",
    "call4agents",
    "call4agents +lookup",
    "exactly-once",
    "exactly-once +lookup",
    "justonce",
    "justonce +final",
    "effect-ledger",
    "dbos step",
    "powertools dynamodb",
)
