"""What the contract suite needs to know of a store: the store itself, and power over its world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backstop.core.canon import CANON_VERSION
from backstop.core.events import FORMAT, Header
from backstop.meshports import MeshStore

START = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
AGENT = "clerk"


class SteppingClock:
    """A second later at each look; `jump` puts it forward, or back."""

    def __init__(self) -> None:
        self._now = START

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A store that was opened with `header()`, on `clock`.

    `kill` makes the owner of that name provably gone, `hide` puts it where nobody can look.
    `wait` lets so many seconds pass for the store. `reopen` opens the same store as another
    process would: with its own header, or None as a person who looks.
    """

    store: MeshStore
    clock: SteppingClock
    kill: Callable[[str], None]
    hide: Callable[[str], None]
    wait: Callable[[float], None]
    reopen: Callable[[Header | None], MeshStore]


class Owners:
    """Stands for what can be seen of owners: all live, but those that were killed or hidden."""

    def __init__(self) -> None:
        self._seen: dict[str, bool | None] = {}

    def is_alive(self, owner: str) -> bool | None:
        """None: nobody can look."""
        return self._seen.get(owner, True)

    def kill(self, owner: str) -> None:
        self._seen[owner] = False

    def hide(self, owner: str) -> None:
        self._seen[owner] = None


def header(**said: object) -> Header:
    return Header(**{"format": FORMAT, "agent": AGENT, "canon": CANON_VERSION, **said})  # type: ignore[arg-type]
