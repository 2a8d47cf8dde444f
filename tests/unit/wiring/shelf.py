"""A ledger in parts, as a store would hand it out; and a process that is killed while it pulls.

    python -m tests.unit.wiring.shelf OUT PART ROW

kills itself with SIGKILL before it has pulled row ROW of part PART.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from backstop.core.sealing import encode
from backstop.ports import Stamped
from backstop.wiring.pulling import Progress, Pulled, pull
from tests.dsl import scenario

NOW: Final = datetime(2026, 3, 2, 6, 0, 0, 123456, tzinfo=UTC)

STORY: Final = """
agent desk
tool pay identity ref
run r1
step s1
commit pay{ref: 1} -> {ok: true}
advance
run r2
step s1
doubt pay{ref: 2}
run r1
step s2
commit pay{ref: 3} -> {ok: true}
advance
close complete
"""

SKIPPED: Final = """
agent desk
tool pay identity ref
run r1
step s1
doubt pay{ref: 2}
advance
close complete
"""

PARTS: Final = ("a", "b", "c")


class Shelf:
    """Hands out a story in parts, out of order; `before` is told what is pulled next."""

    def __init__(self, story: str = STORY, *, kill: tuple[str, int] | None = None) -> None:
        self.told = scenario(story)
        self.header = self.told.header
        self.pulled: list[str] = []
        self.instants: set[datetime] = set()
        self._kill = kill

    def parts(self, at: datetime) -> Sequence[str]:
        self.instants.add(at)
        return PARTS

    def pull(self, part: str, *, at: datetime) -> Iterator[Stamped]:
        self.pulled.append(part)
        self.instants.add(at)
        events = list(enumerate(self.told.events))[PARTS.index(part) :: len(PARTS)]
        for row, (number, event) in enumerate(reversed(events)):
            if self._kill == (part, row):
                os.kill(os.getpid(), signal.SIGKILL)
            # Two events of one stamp: the tie decides.
            yield Stamped(stamp=number // 2, tie=f"{number:04}", line=encode(event))


def pulled(
    shelf: Shelf,
    out: Path,
    *,
    at: datetime | None = None,
    now: datetime = NOW,
    agent: str = "desk",
    progress: Progress | None = None,
) -> Pulled:
    return pull(
        shelf,
        url="shelf:",
        agent=agent,
        out=out,
        at=at,
        now=now,
        progress=progress,
    )


if __name__ == "__main__":
    pulled(Shelf(kill=(sys.argv[2], int(sys.argv[3]))), Path(sys.argv[1]))
