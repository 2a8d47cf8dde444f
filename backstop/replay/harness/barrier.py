"""What holds the candidate's process: rlimits, Landlock, seccomp. Stdlib and ctypes only."""

from __future__ import annotations

import ctypes
import os
import resource
import struct
from pathlib import Path
from typing import Final, NamedTuple

from . import syscalls

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_SIGKILL: Final = 9
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER: Final = 1
_TSYNC, _NEW_LISTENER, _TSYNC_ESRCH = 1, 8, 16
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_GIVE_VERSION, _PATH_BENEATH = 1, 1
_WRITE_FILE: Final = 1 << 1
# WRITE_FILE, REMOVE_DIR, REMOVE_FILE, MAKE_CHAR ... MAKE_SYM: bits 1 and 4 to 12.
_WRITE_RIGHTS: Final = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
_MAKE_DEVICES: Final = (1 << 6) | (1 << 11)
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_CAPABILITIES_V3: Final = 0x20080522
_READ_EVERY_FILE: Final = 1 << 2
_TCP, _FOREIGN_SOCKETS_AND_SIGNALS = 0b11, 0b11


class Bounds(NamedTuple):
    """How much the candidate's process may take."""

    memory: int
    files: int
    file_bytes: int


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def bound(bounds: Bounds) -> None:
    """Set rlimits: address space, open files, file size, no core dump. 0 leaves one as it is."""
    _limit(resource.RLIMIT_CORE, 0)
    for what, value in (
        (resource.RLIMIT_AS, bounds.memory),
        (resource.RLIMIT_NOFILE, bounds.files),
        (resource.RLIMIT_FSIZE, bounds.file_bytes),
    ):
        if value:
            _limit(what, value)


def _limit(what: int, value: int) -> None:
    hard = resource.getrlimit(what)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(what, (value, value))


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that forked it ends."""
    _libc().prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


def give_up_powers() -> None:
    """Drop what root may, but for reading every file: the candidate may not look into others.

    To a process that may trace others, or watch how they perform, the kernel shows their
    environment, Landlock or not.
    """
    header = struct.pack("=Ii", _CAPABILITIES_V3, 0)
    kept = struct.pack("=IIIIII", _READ_EVERY_FILE, _READ_EVERY_FILE, 0, 0, 0, 0)
    held = ctypes.create_string_buffer(len(kept))
    libc = _libc()
    if libc.capget(header, held) == 0 and any(held.raw):
        libc.capset(header, kept)


def restrict_writes(scratch: Path) -> bool:
    """Landlock: from now on this thread and its children write below `scratch` only.

    Where the kernel can, TCP, abstract sockets and signals to the outside are barred too.
    False if the kernel has no Landlock or another thread would escape it.
    """
    libc = _libc()
    version = libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), _GIVE_VERSION)
    threads = sum(1 for _ in Path("/proc/self/task").iterdir())
    if version < 1 or threads > 1:
        return False
    rights = _WRITE_RIGHTS
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE)):
        rights |= right if version >= since else 0
    ruleset = struct.pack(
        "=QQQ",
        rights,
        _TCP if version >= 4 else 0,  # noqa: PLR2004 - the interface's version
        _FOREIGN_SOCKETS_AND_SIGNALS if version >= 6 else 0,  # noqa: PLR2004
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8  # noqa: PLR2004
    rules = libc.syscall(_LANDLOCK_CREATE, ruleset, ctypes.c_size_t(size), 0)
    if rules < 0:
        return False
    try:
        _allow(rules, scratch, rights & ~_MAKE_DEVICES)
        _allow(rules, Path(os.devnull), _WRITE_FILE | (rights & _TRUNCATE))
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return bool(libc.syscall(_LANDLOCK_RESTRICT, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: Path, rights: int) -> None:
    where = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, where)
        _libc().syscall(_LANDLOCK_ADD, rules, _PATH_BENEATH, rule, 0)
    finally:
        os.close(where)


def ask_before_leaving() -> int | None:
    """Install the seccomp program; the descriptor on which the kernel asks, None if it cannot.

    The caller hands the descriptor to the warden and closes it: who holds it decides.
    """
    known = syscalls.machine()
    if known is None:
        return None
    libc = _libc()
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    code = ctypes.create_string_buffer(syscalls.program(known))
    steps = (len(code) - 1) // 8
    program = _Program(steps, ctypes.addressof(code))
    descriptor = libc.syscall(
        _SECCOMP[os.uname().machine],
        _SET_MODE_FILTER,
        _NEW_LISTENER | _TSYNC | _TSYNC_ESRCH,
        ctypes.byref(program),
    )
    return descriptor if descriptor >= 0 else None


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
