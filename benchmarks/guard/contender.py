"""One contender in a process of its own, in its own environment: ``python -m ... NAME FOLDER``.

Each line of standard input names references, each line of standard output says how long a
guarded call took for each, fresh and again, and how many effects there were. Standard library
only, but for the contender itself.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

from benchmarks.guard.contenders import CONTENDERS
from benchmarks.guard.work import Guarded, Order, Place


class Effects:
    """The tool: it does nothing but count, so that what is measured is the guard."""

    def __init__(self) -> None:
        self.happened = 0

    def act(self, ref: str) -> Order:
        """Happen once more."""
        self.happened += 1
        return {"ok": True, "po": ref}


def private_output() -> TextIO:
    """Standard output for us alone; what libraries print goes to standard error."""
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return ours


def built(name: str, place: Place) -> Guarded:
    """The contender `name`, at work in `place`."""
    module = importlib.import_module(CONTENDERS[name].module)
    guarded: Guarded = module.build(place)
    return guarded


def main() -> int:
    """Serve until standard input ends."""
    out = private_output()
    name, folder, service = sys.argv[1:4]
    effects = Effects()
    place = Place(
        folder=Path(folder),
        act=effects.act,
        seen=lambda _ref: False,
        variant=CONTENDERS[name].variant,
        service=service,
    )
    guarded = built(name, place)
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        calls = guarded.again if asked["again"] else guarded.timed
        spent = calls(asked["refs"])
        print(json.dumps({"spent": spent, "effects": effects.happened}), file=out, flush=True)
    out.flush()
    os._exit(0)  # threads of a contender are not waited for


if __name__ == "__main__":
    raise SystemExit(main())
