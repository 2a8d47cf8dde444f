"""One delivery of one call, in a process that an incident may end: ``NAME FOLDER SERVICE ...``.

    python -m benchmarks.guard.delivery NAME FOLDER SERVICE INCIDENT REF NUMBER

The effect is a line in a file, appended by one write: it is there or not, whoever dies. The
last line of standard output says how the delivery ended, if it got that far.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from benchmarks.guard.contender import built, private_output
from benchmarks.guard.contenders import CONTENDERS
from benchmarks.guard.incidents import LEASE_S, truth_of
from benchmarks.guard.work import Order, Place

_RECOVERS_WITHIN_S: Final = 1.5
"""Workflows that an earlier process left are taken up in the background."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Where the effect happens, and what befalls its first delivery."""

    truth: Path
    incident: str
    first: bool

    def act(self, ref: str) -> Order:
        """The effect, and the incident around it."""
        if self.first and self.incident == "killed before":
            _killed()
        if self.first and self.incident == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        file = os.open(self.truth, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.write(file, f"{ref}\n".encode())
        os.close(file)
        if self.first and self.incident == "killed after":
            _killed()
        if self.first and self.incident == "timed out":
            raise TimeoutError("no answer within 30 s")
        return {"ok": True}

    def seen(self, ref: str) -> bool:
        """The lookup: honest, and up to date."""
        return self.truth.exists() and ref in self.truth.read_text(encoding="utf-8").split()


def _killed() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives this")


def main() -> int:
    """Deliver the call once."""
    out = private_output()
    name, folder, service, incident, ref, number = sys.argv[1:7]
    world = World(truth=truth_of(Path(folder)), incident=incident, first=number == "1")
    place = Place(
        folder=Path(folder),
        act=world.act,
        seen=world.seen,
        variant=CONTENDERS[name].variant,
        service=service,
        lease_s=LEASE_S,
    )
    try:
        guarded = built(name, place)
        if name.startswith("dbos"):
            time.sleep(_RECOVERS_WITHIN_S)
        given = guarded.call(ref)
        said = {"done": isinstance(given, dict) and "ok" in given, "said": f"{given!r}"}
    except Exception as error:  # noqa: BLE001 - whatever it raises is its answer
        said = {"done": False, "said": f"{type(error).__name__}: {error}"}
    print(json.dumps(said), file=out, flush=True)
    os._exit(0)  # threads of a contender are not waited for


if __name__ == "__main__":
    raise SystemExit(main())
