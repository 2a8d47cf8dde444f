"""The warden: a small process of ours beside the candidate's, which the kernel asks.

It holds the other end of the seccomp filter, decides about each call that could reach
outside, takes a note of what it refuses, and notices when the candidate's process is gone.
It imports nothing of the candidate's. Answers without a note would leave an escape by
gRPC or `ctypes` unseen, since neither passes Python's audit hook.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import struct
from pathlib import Path
from typing import Final, NamedTuple

from . import syscalls

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_REQUEST: Final = "=QIIiIQ6Q"
_ANSWER: Final = "=QqiI"
_CONTINUE: Final = 1
_HERE: Final = -100
_MAX_PATH: Final = 4096
_CAP: Final = 1000


class Call(NamedTuple):
    """A system call that waits for an answer: who makes it, which, and its arguments."""

    token: int
    thread: int
    name: str
    args: tuple[int, ...]


class Warden:
    """Decides about system calls of one sandboxed process tree and notes what it refuses."""

    def __init__(self, *, scratch: Path, notes: int, machine: syscalls.Machine) -> None:
        self._scratch = scratch.resolve()
        self._notes = notes
        self._names = {number: name for name, number in machine.numbers.items()}
        self._noted: set[tuple[str, str]] = set()
        self._may_fork: int | None = None

    def allow_forks_of(self, process: int) -> None:
        """From now on `process` may fork: it forks a run off the warm candidate."""
        self._may_fork = process

    def serve(self, listener: int) -> None:
        """Answer one waiting system call."""
        request = bytearray(struct.calcsize(_REQUEST))
        try:
            fcntl.ioctl(listener, _RECEIVE, request)
        except OSError:
            return  # its process is gone
        token, thread, _, number, _, _, *args = struct.unpack(_REQUEST, request)
        call = Call(token, thread, self._names.get(number, f"call {number}"), tuple(args))
        why = self._why_refused(call)
        if why is not None:
            self.note(call.name, why)
        answer = struct.pack(
            _ANSWER,
            token,
            0,
            0 if why is None else -errno.EPERM,
            _CONTINUE if why is None else 0,
        )
        with contextlib.suppress(OSError):
            fcntl.ioctl(listener, _SEND, bytearray(answer))

    def note(self, what: str, detail: str) -> None:
        """Tell the harness, once for each kind and place and at most a thousand in all."""
        if (what, detail) in self._noted or len(self._noted) >= _CAP:
            return
        self._noted.add((what, detail))
        line = json.dumps({"what": what, "detail": detail[:500]}) + "\n"
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._notes, line.encode())

    def forget(self) -> None:
        """A new run began: what it tries is told again."""
        self._noted.clear()

    def _why_refused(self, call: Call) -> str | None:
        """Why this call may not be made; None if it may."""
        if call.name in syscalls.FORKS:
            return None if _process_of(call.thread) == self._may_fork else "starts a process"
        if call.name in syscalls.SIGNALS:
            return None if _is_own(call) else f"signal to process {_signed(call.args[0])}"
        if call.name in syscalls.OF_PROCESSES:
            return _foreign(call)
        places = syscalls.PATHS.get(call.name)
        if places is None:
            return _reason(call)
        for place in places:
            path = _path(call, place)
            if path is None or not self._inside(path):
                return f"writes {path or 'to an unreadable path'}"
        return None

    def _inside(self, path: Path) -> bool:
        return path == Path(os.devnull) or self._scratch in (path, *path.parents)


def _foreign(call: Call) -> str | None:
    """Whose running a call would change, unless it is the caller's own, or only looked at."""
    if call.name == "prlimit64" and call.args[2] == 0:
        return None
    target = _signed(call.args[syscalls.OF_PROCESSES[call.name]])
    is_process = call.args[0] == syscalls.GROUPS.get(call.name, call.args[0])
    own = target == 0 or _process_of(target) == _process_of(call.thread)
    return None if is_process and own else f"changes how process {target} runs"


def _reason(call: Call) -> str:
    if call.name in {"socket", "socketpair"}:
        return f"family {call.args[0]}, type {call.args[1] & 0xF}"
    if call.name == "execve":
        return _text(call.thread, call.args[0]) or "a program"
    if call.name in {"mknod", "mknodat"}:
        at = call.args[0 if call.name == "mknod" else 1]
        return _text(call.thread, at) or "a node"
    return "not allowed in a replay"


def _is_own(call: Call) -> bool:
    """Whether a signal goes to the caller's own process."""
    target = _signed(call.args[0])
    return target > 0 and _process_of(target) == _process_of(call.thread)


def _process_of(thread: int) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{thread}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("Tgid:"):
                return int(line.split()[1])
    return None


def _path(call: Call, place: syscalls.Path) -> Path | None:
    """The file that a call names, links followed; None if it cannot be read."""
    try:
        if place.path is None:
            return _descriptor(call, place.below)
        text = "" if call.args[place.path] == 0 else _text(call.thread, call.args[place.path])
        if text is None:
            return None
        if not text:
            return _descriptor(call, place.below)
        base = Path("/") if text.startswith("/") else _base(call, place.below)
        return Path(os.path.realpath(base / text))
    except OSError:
        return None


def _descriptor(call: Call, argument: int | None) -> Path | None:
    if argument is None:
        return None
    return Path(f"/proc/{call.thread}/fd/{_signed(call.args[argument])}").readlink()


def _base(call: Call, below: int | None) -> Path:
    if below is None or _signed(call.args[below]) == _HERE:
        return Path(f"/proc/{call.thread}/cwd").readlink()
    return Path(f"/proc/{call.thread}/fd/{_signed(call.args[below])}").readlink()


def _signed(argument: int) -> int:
    """The low half of an argument, which the C library declares as an int."""
    return int(struct.unpack("=i", struct.pack("=I", argument & 0xFFFFFFFF))[0])


def _text(thread: int, address: int) -> str | None:
    """The string at an address of the caller's memory."""
    try:
        memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = _read_string(memory, address)
        finally:
            os.close(memory)
    except (OSError, OverflowError):
        return None
    end = found.find(b"\0")
    return os.fsdecode(found[:end]) if end >= 0 else None


def _read_string(memory: int, address: int) -> bytes:
    found = b""
    while b"\0" not in found and len(found) < _MAX_PATH:
        # Up to the end of the page: the next one may not be mapped.
        here = address + len(found)
        chunk = os.pread(memory, min(_MAX_PATH - here % _MAX_PATH, _MAX_PATH), here)
        if not chunk:
            break
        found += chunk
    return found


def watch(
    warden: Warden | None, *, listener: int | None, control: int, process: int
) -> tuple[int, bytes]:
    """Serve until `process` has ended: its wait status, and what `control` said last.

    On `control` the candidate's process tells its phase, a byte at a time: ``I`` imported,
    ``R`` a run begins, ``Q`` it leaves as it was told to.
    """
    ended = os.pidfd_open(process)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(control, select.POLLIN)
    if listener is not None:
        poll.register(listener, select.POLLIN)
    said = b""
    while True:
        ready = dict(poll.poll())
        if control in ready:
            word = os.read(control, 64)
            if word:
                said = (said + word)[-64:]
                _hear(warden, word, process)
            else:
                poll.unregister(control)
        if listener is not None and listener in ready:
            if ready[listener] & select.POLLIN and warden is not None:
                warden.serve(listener)
            else:
                poll.unregister(listener)
        if ended in ready:
            return os.waitpid(process, 0)[1], said


def _hear(warden: Warden | None, word: bytes, process: int) -> None:
    if warden is None:
        return
    if b"I" in word:
        warden.allow_forks_of(process)
    if b"R" in word:
        warden.forget()
