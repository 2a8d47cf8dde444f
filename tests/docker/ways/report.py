"""Tries every way out of a container, as the process that the container runs.

It refuses to run where it is not the main process of a container. A way is tried in a process
of its own and does no harm where it works: what can be opened is not written to. What it prints
is one JSON object: for each way ``through …`` with what was reached, or the name of the error
or signal that stopped it.

Its last argument is JSON: `host` and `port` of a listener outside, `abstract` and `path` names
of its Unix sockets, `name` a host name that resolves outside, and `scratch`, the folders that a
candidate may write to.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.docker.ways.entry import WAYS, Attempt


def tried(attempt: Attempt, outside: dict[str, Any]) -> str:
    """What became of one way, tried in a process that may be killed for it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            said = f"through: {attempt(outside)}"
        except OSError as error:
            said = errno.errorcode.get(error.errno or 0, repr(error))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent has to hear it
            said = f"broken: {error!r}"
        os.write(writer, said.encode()[:500])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            return signal.Signals(os.WTERMSIG(status)).name
        # A program that took the attempt's place says nothing.
        return pipe.read(500) or "through: it ran"


def main() -> None:
    """Try everything, and say what came of it."""
    inside = any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv"))
    if not inside or 1 not in {os.getpid(), os.getppid()}:
        sys.exit("the probe runs only as the main process of a container")
    outside = json.loads(sys.argv[-1])
    print(json.dumps({name: tried(attempt, outside) for name, attempt in WAYS.items()}))  # noqa: T201
