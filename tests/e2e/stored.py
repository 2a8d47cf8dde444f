"""A story, told into a real store; by this process, or by one that is killed in the middle.

    python -m tests.e2e.stored tell URL STORY
    python -m tests.e2e.stored pull URL OUT ROW

The first tells the story and then kills itself with SIGKILL: the owner of its claims is gone.
The second pulls agent desk's ledger, and kills itself before it has row ROW.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from backstop.clock import SystemClock
from backstop.core.events import EffectClaimed, EffectResolved, Event, Header
from backstop.core.lifecycle import move_of
from backstop.ports import Claim, Settlement, Stamped, Store
from backstop.wiring.pulling import pull
from backstop.wiring.stores import find_store, open_store
from tests.dsl import scenario

ROOT = Path(__file__).parents[2]


def told(url: str, story: str) -> Store:
    """Tell a story of `tests.dsl` into the store at `url`, which is given back open."""
    source = scenario(story)
    return filled(url, source.header, source.events)


def filled(url: str, header: Header, events: Iterable[Event]) -> Store:
    """Do in the store at `url`, which is given back open, what these events tell of."""
    store = open_store(url, header=header)
    claims: dict[str, Claim] = {}
    for event in events:
        if isinstance(event, EffectClaimed):
            answer = store.claim(event)
            assert isinstance(answer, Claim), answer
            claims[event.key] = answer
        elif move_of(event) is None:
            store.append(event)
        else:
            _settle(store, event, claims)  # type: ignore[arg-type]  # what moves and is no claim
    return store


def _settle(store: Store, event: Settlement, claims: dict[str, Claim]) -> None:
    if isinstance(event, EffectResolved):
        store.settle(event)
    else:
        store.settle(event, claim=claims[event.key])


def told_and_killed(url: str, story: str, **environment: str) -> None:
    """The same in a process that is then killed."""
    _killed("tell", url, story, environment=environment)


def pulled_and_killed(url: str, out: Path, row: int, **environment: str) -> None:
    """A pull in a process that is killed on the way."""
    _killed("pull", url, str(out), str(row), environment=environment)
    assert not out.exists()


def _killed(*arguments: str, environment: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", "tests.e2e.stored", *arguments]
    ran = subprocess.run(
        command, cwd=ROOT, check=False, timeout=60, env={**os.environ, **environment}
    )
    assert ran.returncode == -signal.SIGKILL


class Dying:
    """A store whose reader is killed on the way."""

    def __init__(self, store: Store, row: int) -> None:
        self._store = store
        self._row = row

    @property
    def header(self) -> Header:
        return self._store.header

    def parts(self, at: datetime) -> Sequence[str]:
        return self._store.parts(at)

    def pull(self, part: str, *, at: datetime) -> Iterator[Stamped]:
        for number, row in enumerate(self._store.pull(part, at=at)):
            if number == self._row:
                die()
            yield row


def die() -> None:
    """As by ``kill -9``."""
    os.kill(os.getpid(), signal.SIGKILL)


def _main(what: str, url: str, *rest: str) -> None:
    if what == "tell":
        told(url, rest[0])
        die()
    dying = Dying(find_store(url, agent="desk"), int(rest[1]))
    now = SystemClock().now()
    pull(dying, url=url, agent="desk", out=Path(rest[0]), at=None, now=now)


if __name__ == "__main__":
    _main(*sys.argv[1:])
