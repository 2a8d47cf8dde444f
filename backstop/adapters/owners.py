"""Who holds a claim, and whether it still runs: a process's name, and what can be seen of it.

A process is named by its host, the boot of that host, its pid and time namespaces, its pid, and
when it started: no later process ever has all of them. It can be looked up only by a process
that shares host, boot and namespaces; anywhere else nothing is known of it.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path
from typing import Final

from backstop.ports import Liveness

_PROC: Final = Path("/proc")
_SEPARATOR: Final = "/"
_PARTS: Final = 5
_STATE, _STARTED = 0, 19
"""Places in /proc/PID/stat, counted from behind the name, which may hold anything."""


def this_process() -> str:
    """The name of this process: ``host/boot/namespaces/pid/start``, one line of ASCII.

    What the system does not tell is left empty; nobody can then look the process up.
    """
    return _name_of(os.getpid())


def liveness_of(process: str) -> Liveness:
    """What can be seen of the process of this name from here; `UNKNOWN` for any other text."""
    if process == this_process():
        return Liveness.ALIVE
    theirs, ours = process.split(_SEPARATOR), this_process().split(_SEPARATOR)
    if len(theirs) != _PARTS or theirs[:3] != ours[:3] or not all(ours):
        return Liveness.UNKNOWN
    pid, started = theirs[3:]
    if not (pid.isdecimal() and started.isdecimal()):
        return Liveness.UNKNOWN
    return _seen(int(pid), started)


def _seen(pid: int, started: str) -> Liveness:
    try:
        # /proc may hide the processes of others; a signal that is not sent finds them all.
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return Liveness.GONE
    except PermissionError:
        pass
    stat = _stat(pid)
    if stat is None:
        return Liveness.UNKNOWN
    if stat[_STARTED] != started:
        return Liveness.GONE
    # A dead process waits for its parent; one whose first thread has ended may have others.
    ended = stat[_STATE] in {"Z", "X"} and _threads(pid) <= 1
    return Liveness.GONE if ended else Liveness.ALIVE


@cache  # a forked child asks with a pid of its own
def _name_of(pid: int) -> str:
    stat = _stat(pid)
    namespaces = [_link(f"self/ns/{kind}") for kind in ("pid", "time")]
    parts = (
        socket.gethostname().encode("ascii", "replace").decode().replace(_SEPARATOR, "_"),
        _text("sys/kernel/random/boot_id"),
        "-".join(namespaces) if all(namespaces) else "",
        str(pid),
        "" if stat is None else stat[_STARTED],
    )
    return _SEPARATOR.join(parts)


def _stat(pid: int) -> list[str] | None:
    fields = _text(f"{pid}/stat").rpartition(")")[2].split()
    return fields if len(fields) > _STARTED else None


def _threads(pid: int) -> int:
    try:
        return sum(1 for _ in (_PROC / str(pid) / "task").iterdir())
    except OSError:
        return 0


def _text(name: str) -> str:
    try:
        return (_PROC / name).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _link(name: str) -> str:
    """The number of a namespace: the link reads ``pid:[4026531836]``."""
    try:
        return str((_PROC / name).readlink()).partition("[")[2].rstrip("]")
    except OSError:
        return ""
