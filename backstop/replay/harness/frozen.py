"""Time, ids and chance of a replay: frozen at an instant, drawn from a seed.

Covers the standard library whichever name the candidate imported it under: `time-machine`
swaps the clock's C functions, and randomness is replaced at its sources before the
candidate is imported. Clocks that only measure go on by what was waited for (`Waiting`).
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
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

_NODE: Final = 0x0200_0000_0001
"""A locally administered address in place of the machine's own."""
_HOST, _PROCESS = "replay", 2
_SECOND: Final = 1_000_000_000
_UPTIME: Final = 1_000_000 * _SECOND
"""What clocks that only measure start from: a machine that has been up for some days."""


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

    `waited` are the nanoseconds by which waiting moved it.
    """

    def __init__(self) -> None:
        self.waited = 0
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
            self._traveller = time_machine.travel(instant(at), tick=False).start()
        self.step(at, seed)

    def step(self, at: str, seed: int) -> None:
        """Begin a step: time stands at `at`, chance starts from `seed`."""
        self._set(instant(at))
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
        if at and (to := instant(at)) > self._at:
            self._set(to)

    def wait(self, nanoseconds: int) -> None:
        """Move frozen time on by what somebody waited for."""
        self.waited += nanoseconds
        self._set(self._at + timedelta(microseconds=nanoseconds / 1000))

    def _set(self, at: datetime) -> None:
        self._at = at
        self._traveller.move_to(at)

    def _replace_stopwatches(self) -> None:
        """Have clocks that only measure show what was waited for, and nothing of this machine."""
        real = time.monotonic

        def measured(self: asyncio.BaseEventLoop) -> float:  # noqa: ARG001 - a method
            return real()

        # Event loops other than a run's wait really, so they must measure really.
        asyncio.BaseEventLoop.time = measured  # type: ignore[method-assign]
        for name in ("monotonic", "perf_counter"):
            setattr(time, name, lambda: (_UPTIME + self.waited) / _SECOND)
            setattr(time, f"{name}_ns", lambda: _UPTIME + self.waited)

    def _replace_sources(self) -> None:
        source = self._source
        os.urandom = source.draw
        random._urandom = source.draw  # type: ignore[attr-defined] # noqa: SLF001 - SystemRandom, and so secrets, draw from here
        uuid._node = _NODE  # type: ignore[attr-defined] # noqa: SLF001 - uuid1 names the machine
        seed_random = random.Random.seed

        def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
            # A generator without a seed would take one from the system.
            seed_random(self, source.draw(32) if a is None else a, version)

        random.Random.seed = seed  # type: ignore[method-assign]

    def _replace_whereabouts(self) -> None:
        """Which machine and which process this is says nothing about a version."""
        kind = os.uname()
        here = (kind.sysname, _HOST, kind.release, kind.version, kind.machine)
        os.uname = lambda: os.uname_result(here)
        os.getpid = lambda: _PROCESS
        socket.gethostname = lambda: _HOST
        platform._uname_cache = None  # type: ignore[attr-defined] # noqa: SLF001 - it may have been looked at before


def instant(at: str) -> datetime:
    """An RFC 3339 text as an aware instant."""
    return datetime.fromisoformat(at)
