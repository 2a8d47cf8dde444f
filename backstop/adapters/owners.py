"""Who holds a claim, and whether it still runs: a process's name, and what can be seen of it.

A process is named by its host, the boot of that host, its pid and time namespaces, its pid, and
when it started: no later process ever has all of them. It can be looked up only by a process
that shares host, boot and namespaces; anywhere else nothing is known of it.

Where processes share a folder, each holds an OS lock on a file of its own there until it ends.
The lock outlives nothing: not kill -9, not a new boot. A process that is stopped keeps it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec

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


class _Owner(msgspec.Struct, frozen=True, kw_only=True):
    """What a lock's file says, for people and for whoever clears it away."""

    process: str
    host: str
    boot: str
    pid: str
    start: str


_HELD: Final[dict[str, int]] = {}
"""The lock that this process holds in each folder, as an open file; it is never let go."""
_GUARD: Final = Lock()


def _let_go() -> None:
    # A child that kept its parent's files open would keep the parent's locks, too.
    for held in _HELD.values():
        os.close(held)
    _HELD.clear()
    if _GUARD.locked():
        _GUARD.release()  # by a thread that the child does not have


os.register_at_fork(after_in_child=_let_go)


class OwnerLocks:
    """The locks of the processes that share a folder. Raises `OSError` where that is unusable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._gone: set[str] = set()

    def hold(self) -> str:
        """The name of this process, whose lock is held from now on until it ends."""
        process = this_process()
        with _GUARD:
            folder = os.path.realpath(self._folder)
            if folder not in _HELD:
                self._folder.mkdir(exist_ok=True)
                _HELD[folder] = self._taken(process)
        return process

    def liveness(self, process: str) -> Liveness:
        """What the lock of a process says; where there is none, what can be seen of it."""
        if process in self._gone:
            return Liveness.GONE
        try:
            lock = os.open(self._file(process), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return liveness_of(process)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return Liveness.ALIVE
        finally:
            os.close(lock)
        self._gone.add(process)
        return Liveness.GONE

    def clear(self, note: Callable[[str], object]) -> None:
        """Remove the locks of dead processes, each once `note` has put on record that it is."""
        for file in self._folder.glob("*.lock"):
            try:
                lock = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue  # somebody else cleared it, or it is not ours to clear
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                note(msgspec.json.decode(file.read_bytes(), type=_Owner).process)
                file.unlink(missing_ok=True)
            except (OSError, msgspec.MsgspecError):
                continue  # it lives, or it is no lock of ours
            finally:
                os.close(lock)

    def _taken(self, process: str) -> int:
        file = self._file(process)
        host, boot, _, pid, start = process.split(_SEPARATOR)
        said = _Owner(process=process, host=host, boot=boot, pid=pid, start=start)
        # It gets its name once it is locked: nobody ever finds it free while its owner lives.
        unnamed = file.with_suffix(".new")
        lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(lock, 0)
            os.write(lock, msgspec.json.format(msgspec.json.encode(said)) + b"\n")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unnamed.rename(file)
        except BaseException:
            os.close(lock)
            raise
        return lock

    def _file(self, process: str) -> Path:
        return self._folder / f"{hashlib.sha256(process.encode()).hexdigest()[:32]}.lock"
