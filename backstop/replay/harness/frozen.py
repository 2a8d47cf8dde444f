"""Time, ids and chance of a replay: frozen at an instant, drawn from a seed.

Covers the standard library whichever name the candidate imported it under: `time-machine`
swaps the clock's C functions, and randomness is replaced at its sources before the
candidate is imported. Clocks that only measure go on by what was waited for (`Waiting`).

World 0 is the recorded one. In another everything is there that a version may not depend on
and is otherwise: the time is a constant later, chance has another seed, machine and process
have other names, folders list their files in another order. What comes out otherwise there
is no word of the version's.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import random
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, Self

_NODE: Final = 0x0200_0000_0001
"""A locally administered address in place of the machine's own."""
_HOST, _PROCESS = "replay", 2
_SECOND: Final = 1_000_000_000
_UPTIME: Final = 1_000_000 * _SECOND
"""What clocks that only measure start from: a machine that has been up for some days."""
_LATER: Final = timedelta(days=1, hours=1, minutes=1, seconds=1, microseconds=1001)
"""From one world to the next: nothing that a date or a clock shows stays, and little passes.

A redelivery comes hours or days after the first try; a shift of years would send every check
of a date in the record the other way.
"""
_STRIDE: Final = 0x9E37_79B9_7F4A_7C15
"""From one world's seeds to the next one's: odd, so that they differ in every width."""


class Source:
    """Bytes from a seed, as many as asked for: what stands in for the system's randomness."""

    def __init__(self) -> None:
        self._seed = b""
        self._drawn = 0

    def reseed(self, seed: int) -> None:
        """Start the stream of `seed` from its beginning."""
        self._seed = str(seed).encode()
        self._drawn = 0

    def draw(self, size: int) -> bytes:
        """The next `size` bytes."""
        found = b""
        while len(found) < size:
            found += hashlib.sha256(b"%b:%d" % (self._seed, self._drawn)).digest()
            self._drawn += 1
        return found[:size]


class Frozen:
    """The frozen clock and the seeded sources of this process.

    `waited` are the nanoseconds by which waiting moved it, `world` which of the worlds it is.
    """

    def __init__(self, world: int = 0) -> None:
        self.waited = 0
        self._world = world
        self._later = world * _LATER
        self._at = instant("1970-01-01T00:00:00+00:00")
        self._source = Source()
        self._traveller: Any = None
        self._seed_random: Callable[..., None] | None = None

    def begin(self, at: str, seed: int) -> None:
        """Freeze time at `at` and seed chance; from here on nothing real is left to read."""
        import time_machine

        if self._traveller is None:
            self._replace_sources()
            self._replace_stopwatches()
            self._replace_whereabouts()
            if self._world:
                _replace_order()
            self._traveller = time_machine.travel(self._here(at), tick=False).start()
        self.step(at, seed)

    def step(self, at: str, seed: int) -> None:
        """Begin a step: time stands at `at`, chance starts from `seed`."""
        seed += self._world * _STRIDE
        self._set(self._here(at))
        self._source.reseed(seed)
        random.seed(seed)
        uuid._last_timestamp = None  # type: ignore[attr-defined] # noqa: SLF001 - uuid1 remembers the time of the last one
        numpy = sys.modules.get("numpy.random")
        if numpy is not None:
            numpy.seed(seed % 2**32)

    def move(self, at: str) -> None:
        """Move frozen time on to `at` (S3): never back, and nowhere for an empty text.

        A version that waits longer than the recorded one did is ahead of the record.
        """
        if at and (to := self._here(at)) > self._at:
            self._set(to)

    def wait(self, nanoseconds: int) -> None:
        """Move frozen time on by what somebody waited for."""
        self.waited += nanoseconds
        self._set(self._at + timedelta(microseconds=nanoseconds / 1000))

    def _here(self, at: str) -> datetime:
        """What the clock of this world shows at a recorded time."""
        return instant(at) + self._later

    def _set(self, at: datetime) -> None:
        self._at = at
        self._traveller.move_to(at)

    def _replace_stopwatches(self) -> None:
        """Have clocks that only measure show what was waited for, and nothing of this machine."""
        real = time.monotonic
        uptime = _UPTIME + round(self._later.total_seconds() * _SECOND)

        def measured(self: asyncio.BaseEventLoop) -> float:  # noqa: ARG001 - a method
            return real()

        # Event loops other than a run's wait really, so they must measure really.
        asyncio.BaseEventLoop.time = measured  # type: ignore[method-assign]
        for name in ("monotonic", "perf_counter"):
            setattr(time, name, lambda: (uptime + self.waited) / _SECOND)
            setattr(time, f"{name}_ns", lambda: uptime + self.waited)

    def _replace_sources(self) -> None:
        source = self._source
        os.urandom = source.draw
        random._urandom = source.draw  # type: ignore[attr-defined] # noqa: SLF001 - SystemRandom, and so secrets, draw from here
        uuid._node = _NODE + self._world  # type: ignore[attr-defined] # noqa: SLF001 - uuid1 names the machine
        seed_random = random.Random.seed

        def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
            # A generator without a seed would take one from the system.
            seed_random(self, source.draw(32) if a is None else a, version)

        random.Random.seed = seed  # type: ignore[method-assign]

    def _replace_whereabouts(self) -> None:
        """Which machine and which process this is says nothing about a version."""
        kind = os.uname()
        host = f"{_HOST}-{self._world}" if self._world else _HOST
        here = (kind.sysname, host, kind.release, kind.version, kind.machine)
        os.uname = lambda: os.uname_result(here)
        os.getpid = lambda: _PROCESS + self._world
        socket.gethostname = lambda: host
        platform._uname_cache = None  # type: ignore[attr-defined] # noqa: SLF001 - it may have been looked at before


class _Backwards:
    """The entries of a folder from the last to the first; closes like `os.scandir`'s."""

    def __init__(self, entries: Iterator[Any]) -> None:
        self._entries = iter([*entries][::-1])

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is left open: all entries were read at once."""


def _replace_order() -> None:
    """Have folders list what is in them the other way round; no system promises an order."""
    listdir, scandir = os.listdir, os.scandir

    def names(*args: Any, **kwargs: Any) -> list[Any]:
        return [*listdir(*args, **kwargs)][::-1]

    def entries(*args: Any, **kwargs: Any) -> _Backwards:
        with scandir(*args, **kwargs) as found:
            return _Backwards(found)

    os.listdir = names
    os.scandir = entries  # type: ignore[assignment]


def instant(at: str) -> datetime:
    """An RFC 3339 text as an aware instant."""
    return datetime.fromisoformat(at)
