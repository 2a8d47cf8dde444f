"""The worker processes of the demonstration: started, listened to, killed, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from examples.vendor_onboarding.demo_worker import Report

ROOT: Final = Path(__file__).parents[2]
_ENDS_WITHIN_S: Final = 10.0


class Died(Exception):
    """A worker ended by itself: the demonstration cannot go on."""


class Cast:
    """The workers at work. Each is ended for certain: it ends with the pipe that leads to it."""

    def __init__(self, arguments: Sequence[str], heard: Callable[[Report], None]) -> None:
        self._command = [sys.executable, "-m", "examples.vendor_onboarding.demo_worker", *arguments]
        self._heard = heard
        self._workers: dict[int, asyncio.subprocess.Process] = {}
        self._listening: set[asyncio.Task[None]] = set()
        self.killed = 0

    async def hire(self) -> None:
        """Start one more."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
            start_new_session=True,
        )
        self._workers[process.pid] = process
        self._listening.add(asyncio.create_task(self._listen(process)))

    async def kill(self, pid: int) -> None:
        """Kill -9 one of them, and hire another."""
        process = self._workers.pop(pid)
        process.kill()
        await process.wait()
        self.killed += 1
        await self.hire()

    def check(self) -> None:
        """Raises `Died` if one of them is gone that nobody killed."""
        for process in self._workers.values():
            if process.returncode is not None:
                raise Died(f"a worker ended by itself, with exit code {process.returncode}")

    async def end(self) -> None:
        """Tell them to stop, and see to it."""
        for process in self._workers.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        for process in self._workers.values():
            try:
                await asyncio.wait_for(process.wait(), _ENDS_WITHIN_S)
            except TimeoutError:
                process.kill()
                await process.wait()
        await asyncio.gather(*self._listening)

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        while line := await process.stdout.readline():
            self._heard(msgspec.json.decode(line, type=Report))


@asynccontextmanager
async def working(cast: Cast, number: int) -> AsyncIterator[Cast]:
    """So many workers, and none of them is left behind."""
    try:
        for _ in range(number):
            await cast.hire()
        yield cast
    finally:
        await cast.end()
