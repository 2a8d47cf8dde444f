"""Other processes, and a store in this one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backstop.adapters.sqlite.store import SqliteStore
from backstop.clock import SystemClock
from backstop.core.events import Header
from tests.contract.bench import AGENT, header

ROOT = Path(__file__).parents[3]


def opened(path: Path, *, registered: Header | None = None) -> SqliteStore:
    return SqliteStore(path, agent=AGENT, header=registered or header(), clock=SystemClock())


class Worker:
    """Another process, and what it answers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, line: str) -> str:
        self.say(line)
        return self.hear()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def worker(path: Path, owner: str = "theirs") -> Iterator[Worker]:
    command = [sys.executable, "-m", "tests.unit.adapters.sqlite_worker", str(path), owner]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        other = Worker(process)
        try:
            assert other.hear() == "ready"
            yield other
        finally:
            process.kill()
