"""Starts contenders in their environments and talks to them."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.guard.contenders import CONTENDERS
from benchmarks.guard.servers import Servers

PEERS_PYTHON: Final = Path(".venv-bench/bin/python")


def python_of(name: str) -> str:
    """The interpreter of a contender's environment."""
    return sys.executable if CONTENDERS[name].is_ours else str(PEERS_PYTHON)


@dataclass(slots=True, kw_only=True)
class Host:
    """A running contender."""

    name: str
    home: Path
    process: subprocess.Popen[str]
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _happened: int = 0

    def fresh(self, calls: int) -> tuple[list[float], list[str]]:
        """Milliseconds of so many calls that nobody made before, and their references."""
        refs = [f"PO-{next(self._numbers):06d}" for _ in range(calls)]
        spent, happened = self._ask(refs, again=False)
        if happened - self._happened != calls:
            raise RuntimeError(f"{self.name}: {happened - self._happened} effects of {calls} calls")
        self._happened = happened
        return spent, refs

    def again(self, refs: Sequence[str]) -> list[float]:
        """Milliseconds of calls that were made before: none of them may go out again."""
        spent, happened = self._ask(refs, again=True)
        if happened != self._happened:
            raise RuntimeError(f"{self.name}: {happened - self._happened} effects went out twice")
        return spent

    def single(self, refs: Sequence[str]) -> None:
        """Make these calls one by one, untimed."""
        _, self._happened = self._ask(refs, again=True)

    def _ask(self, refs: Sequence[str], *, again: bool) -> tuple[list[float], int]:
        assert self.process.stdin is not None  # noqa: S101 - both are pipes
        assert self.process.stdout is not None  # noqa: S101
        with suppress(BrokenPipeError):  # it ended: then it says nothing, either
            print(json.dumps({"refs": refs, "again": again}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            said = (self.home / "stderr").read_text(encoding="utf-8")[-2000:]
            raise RuntimeError(f"{self.name} ended: exit {self.process.wait()}\n{said}")
        told = json.loads(line)
        return [1000 * each for each in told["spent"]], told["effects"]


@contextmanager
def hosted(name: str, folder: Path, servers: Servers) -> Iterator[Host]:
    """Run a contender whose database lives in `folder`."""
    home = folder / name.replace(" ", "-")
    home.mkdir()
    command = [
        python_of(name),
        "-m",
        "benchmarks.guard.contender",
        name,
        str(home),
        servers.address(CONTENDERS[name].service),
    ]
    with (
        (home / "stderr").open("w") as noise,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=noise, text=True
        ) as process,
    ):
        try:
            yield Host(name=name, home=home, process=process)
        finally:
            assert process.stdin is not None  # noqa: S101 - it is a pipe
            with suppress(BrokenPipeError):
                process.stdin.close()
