"""What happens to a call whose first delivery meets with an accident: total effects, counted.

The file that the effect is a line of is the truth. Three deliveries each, every one in a
process of its own; the later ones come when any lease is over.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.guard.contenders import CONTENDERS, HIT_BY_INCIDENTS
from benchmarks.guard.hosts import python_of
from benchmarks.guard.servers import Servers

INCIDENTS: Final = ("killed before", "killed after", "timed out", "stopped")
LEASE_S: Final = 1.0

_DELIVERIES: Final = 3
_LEASE_OVER_S: Final = 1.5
_STOPS_WITHIN_S: Final = 60.0
_AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Effects of one call after all deliveries, and how the last delivery ended."""

    effects: int
    done: bool
    said: str

    @property
    def mark(self) -> str:
        """``1``: out once and known; ``1?`` or ``0?``: refused, a person is asked; else a fault."""
        if self.effects > 1:
            return f"{self.effects} TWICE"
        if self.effects == 0 and self.done:
            return "0 SKIPPED"
        return f"{self.effects}" if self.done else f"{self.effects}?"


def truth_of(folder: Path) -> Path:
    """The file whose lines are the effects."""
    return folder / "truth"


def report(folder: Path, servers: Servers, *, keys: int) -> None:
    """Every incident on every contender; a table of effects."""
    print(f"\neffects of one call after {_DELIVERIES} deliveries, the first met with an incident")
    print("  1 out once, result known   0? 1? refused: a person is asked   TWICE, SKIPPED faults")
    print(f"  {'':26}" + "".join(f"{incident:>15}" for incident in INCIDENTS))
    services = {name: servers.address(CONTENDERS[name].service) for name in HIT_BY_INCIDENTS}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        rows = {
            name: [
                pool.submit(met, name, incident, folder, services[name], number)
                for incident in INCIDENTS
                for number in range(keys)
            ]
            for name in HIT_BY_INCIDENTS
        }
        for name, futures in rows.items():
            outcomes = [future.result() for future in futures]
            cells = [outcomes[at : at + keys] for at in range(0, len(outcomes), keys)]
            print(f"  {name:26}" + "".join(f"{_cell(cell):>15}" for cell in cells), flush=True)


def _cell(outcomes: Sequence[Outcome]) -> str:
    marks = [outcome.mark for outcome in outcomes]
    return " ".join(
        mark if marks.count(mark) == 1 else f"{marks.count(mark)}x {mark}"
        for mark in dict.fromkeys(marks)
    )


def met(name: str, incident: str, folder: Path, service: str, number: int) -> Outcome:
    """One call of one contender meets with one incident."""
    home = folder / "incidents" / f"{name} {incident} {number}".replace(" ", "-")
    home.mkdir(parents=True)
    ref = home.name
    first = _delivered(name, home, service, incident, ref, 1)
    if incident == "stopped":
        _wait_until_stopped(first)
    else:
        first.wait()
    last = ""
    for delivery in range(2, _DELIVERIES + 1):
        time.sleep(_LEASE_OVER_S)
        last = _delivered(name, home, service, incident, ref, delivery).communicate()[0]
        if incident == "stopped" and delivery == 2:
            os.kill(first.pid, signal.SIGCONT)
            first.wait()
    truth = truth_of(home)
    effects = len(truth.read_text(encoding="utf-8").split()) if truth.exists() else 0
    told = json.loads(last.splitlines()[-1]) if last else {"done": False, "said": "it died"}
    return Outcome(effects=effects, done=told["done"], said=told["said"])


def _delivered(
    name: str, home: Path, service: str, incident: str, ref: str, number: int
) -> subprocess.Popen[str]:
    command = [python_of(name), "-m", "benchmarks.guard.delivery", name, str(home), service]
    with (home / f"stderr-{number}").open("w") as noise:
        return subprocess.Popen(
            [*command, incident, ref, str(number)],
            stdout=subprocess.PIPE,
            stderr=noise,
            text=True,
        )


def _wait_until_stopped(process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + _STOPS_WITHIN_S
    while time.monotonic() < until:
        pid, status = os.waitpid(process.pid, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            return
        if pid:
            raise RuntimeError(f"{process.args}: ended before the incident")
        time.sleep(0.05)
    raise RuntimeError(f"{process.args}: never came to the incident")
