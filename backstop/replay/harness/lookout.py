"""Reports what the candidate tries and may not: Python's audit events and the warden's notes.

The audit hook is no boundary, since C code passes it by; the kernel is. It is here to say
where in the candidate an attempt came from, and it is all there is where the kernel offers
nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

Sink: TypeAlias = Callable[[str, str], None]

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ALWAYS: Final = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.system",
        "pty.spawn",
        "socket.__new__",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyaddr",
        "socket.gethostbyname",
        "socket.getnameinfo",
        "socket.sendmsg",
        "socket.sendto",
        "subprocess.Popen",
    }
)
_PATHS: Final[dict[str, tuple[tuple[int, int | None], ...]]] = {
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.link": ((0, 2), (1, 3)),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.setxattr": ((0, None),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
}
"""Which arguments name a file that is changed, and which the open folder that it lies below."""

_STARTING: Final = frozenset({"os.exec", "os.posix_spawn", "subprocess.Popen"})
_OF_CONCERN: Final = frozenset({*_ALWAYS, *_PATHS, "open", "sqlite3.connect"})
_CAP: Final = 1000


def _nobody(_what: str, _detail: str) -> None:
    """Hears of it and says nothing."""


class Barred(PermissionError):
    """The candidate tried something from which it is barred in a replay."""


class Lookout:
    """Tells a sink of barred attempts, once for each kind, detail and step.

    `opened` are the absolute paths of files that were opened for reading. Paths in `start` are
    told from there.
    """

    def __init__(self, *, scratch: Path, start: Path, notes: int | None) -> None:
        self._scratch = os.path.realpath(scratch)
        self._start = f"{os.path.realpath(start)}/"
        self._notes = notes
        self._sink: Sink | None = None
        self._told: set[tuple[str, str, str]] = set()
        self._idle = True
        self._backed = False
        self._unread = b""
        self.opened: set[str] = set()
        self.step = ""
        if notes is not None:
            os.set_blocking(notes, False)

    def install(self) -> None:
        """Watch this process from now on; a hook cannot be removed again."""
        sys.addaudithook(self._hook)

    def leave_to_the_kernel(self) -> None:
        """It asks the warden from now on: what no audit event tells is judged there."""
        self._backed = True

    def report_to(self, sink: Sink | None) -> None:
        """Whom to tell; None tells nobody, and still bars."""
        self._sink = sink

    def pause(self) -> contextlib.AbstractContextManager[None]:
        """What happens inside is ours."""
        return self._paused()

    @contextlib.contextmanager
    def _paused(self) -> Any:
        before, self._idle = self._idle, False
        try:
            yield
        finally:
            self._idle = before

    @contextlib.contextmanager
    def unheard(self) -> Any:
        """What is tried inside is tried by us: it is barred as ever, and told to nobody."""
        self.collect()
        sink, told = self._sink, set(self._told)
        self._sink = _nobody
        try:
            yield
        finally:
            self.collect()
            self._sink, self._told = sink, told

    def collect(self) -> None:
        """Pass on the notes that the warden took since last time."""
        if self._notes is None:
            return
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._notes, 1 << 16):
                self._unread += chunk
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            note = json.loads(line)
            self._tell(str(note["what"]), str(note["detail"]))

    def drop(self) -> None:
        """Forget the notes so far: they are of the framework's import, not the candidate's."""
        sink, self._sink = self._sink, None
        self.collect()
        self._sink = sink
        self._told.clear()

    def _tell(self, what: str, detail: str) -> None:
        # Where these lie is chance, and no verdict may depend on it.
        detail = detail.replace(self._scratch, "scratch")
        if self._start != "//":
            detail = detail.replace(self._start, "")
        key = (what, detail, self.step)
        if self._sink is None or key in self._told or len(self._told) >= _CAP:
            return
        self._told.add(key)
        self._sink(what, detail)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        # Called for everything that the interpreter does: what is of no concern leaves first.
        if event in _OF_CONCERN and self._idle and self._sink is not None:
            self._idle = False
            try:
                detail = self._barred(event, args)
                if detail is None:
                    return
                self._tell(event, f"{detail}{_place()}")
            finally:
                self._idle = True
            raise Barred(1, f"{event} is barred in a replay: {detail}")

    def _barred(self, event: str, args: tuple[Any, ...]) -> str | None:
        """What the event wants, if it may not have it."""
        if event == "socket.__new__" and args[1] == socket.AF_UNIX:
            return None  # the event loop's own pair; where it would reach out, it must connect
        if event in _ALWAYS:
            return _wanted(event, args)
        if event == "open":
            path, mode, flags = args
            writes = any(c in mode for c in "wax+") if isinstance(mode, str) else flags & _WRITES
            if writes:
                is_unclear = mode is None and _is_relative(path)
                return None if is_unclear and self._backed else self._outside(path)
            if isinstance(path, str):
                with contextlib.suppress(OSError):  # the folder that it is in may be gone
                    self.opened.add(path if path[:1] == "/" else str(Path.cwd() / path))
            return None
        if event == "sqlite3.connect":
            return self._outside(_database(os.fsdecode(args[0])))
        for position, below in _PATHS[event]:
            found = self._outside(args[position], None if below is None else args[below])
            if found is not None:
                return found
        return None

    def _outside(self, path: Any, below: int | None = None) -> str | None:
        """A write outside scratch, by its path. A descriptor was opened before, and judged then.

        A relative path begins at the open folder `below`, if that is one.
        """
        if isinstance(path, int) or path is None:
            return None
        text = os.fsdecode(path)
        if text in {os.devnull, ""}:
            return None
        if below is not None and below >= 0:
            with contextlib.suppress(OSError):
                text = str(Path(f"/proc/self/fd/{below}").readlink() / text)
        real = os.path.realpath(text)
        return None if f"{real}/".startswith(f"{self._scratch}/") else f"writes {text}"


def _is_relative(path: Any) -> bool:
    """May the path begin at an open folder, of which `os.open` tells nobody?"""
    return isinstance(path, str | bytes) and not os.fsdecode(path).startswith("/")


def _database(name: str) -> str | None:
    """The file of a database that SQLite may write; None for one in memory, or only read."""
    if not name.startswith("file:"):
        return None if name == ":memory:" else name
    path, _, options = name.removeprefix("file:").partition("?")
    is_kept = path != ":memory:" and {"mode=memory", "mode=ro"}.isdisjoint(options.split("&"))
    return path if is_kept else None


def _wanted(event: str, args: tuple[Any, ...]) -> str:
    if event.startswith("socket."):
        args = args[1:] if event in {"socket.__new__", "socket.connect", "socket.bind"} else args
    elif event in _STARTING:
        args = args[:2]  # an environment may hold what nobody should read in a report
    return ", ".join(_brief(arg) for arg in args if arg is not None)[:300]


def _brief(value: Any) -> str:
    try:
        return str(value)[:200]
    except Exception:  # noqa: BLE001 - a candidate's own object may raise anything
        return type(value).__name__


def _place() -> str:
    """Where in the candidate's code this comes from: the innermost frame outside libraries."""
    for frame in reversed(traceback.extract_stack(limit=60)):
        if _is_candidates(frame.filename):
            return f" at {Path(frame.filename).name}:{frame.lineno} in {frame.name}"
    return ""


def _is_candidates(filename: str) -> bool:
    return not (
        filename.startswith(("<", sys.prefix, sys.base_prefix))
        or "site-packages" in filename
        or __package__.partition(".")[0] in filename
    )
