"""What a verdict cannot say where the version that runs now was not replayed, and what helps."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final


class Lacking(Enum):
    """Why the version that runs now was not replayed beside the candidate."""

    UNNAMED = auto()
    """Nobody said where it is."""
    NEW = auto()
    """It does not have the agent yet."""
    OFF = auto()
    """The configuration leaves it out."""
    FILES = auto()
    """Two files are compared, and nothing is replayed."""


_TELLING: Final[Mapping[Lacking, str]] = {
    Lacking.UNNAMED: "the version that runs now tells: name its folder by --base",
    Lacking.NEW: "the version that runs now would tell, but the base does not have this agent yet",
    Lacking.OFF: "the version that runs now would tell, but gate.control leaves it out",
    Lacking.FILES: "the version that runs now tells: replay with --base",
}
_LOOKING: Final[Mapping[Lacking, str]] = {
    Lacking.UNNAMED: "name the folder of the version that runs now by --base",
    Lacking.NEW: "the base does not have this agent yet",
    Lacking.OFF: "gate.control leaves the version that runs now out",
    Lacking.FILES: "replay with --base",
}


def telling(lacking: Lacking | None) -> str:
    """What would tell what models were asked, where the ledger does not (A5).

    None says that the version that runs now was replayed.
    """
    if lacking is None:
        return "the version that runs now does not tell either"
    return _TELLING[lacking]


def not_looked_for(lacking: Lacking) -> str:
    """That nobody looked for changes which no run reached, and what would (D7)."""
    return f"changes that no run reached were not looked for: {_LOOKING[lacking]}"
