"""The kernel's numbers, and the seccomp program that asks before anything leaves the process.

Three things happen to a system call: it passes; it is refused in the kernel; or the kernel
asks the warden, which sees its arguments, decides and takes a note. Whatever can reach
outside by a path is asked about, so that a refused attempt is also a reported one, by
whatever library or `ctypes` it was made.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_PASS, _ASK, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_X32: Final = 0x40000000
_CLONE_THREAD: Final = 0x00010000
_AF_UNIX, _SOCK_STREAM, _SOCK_KINDS = 1, 1, 0xF

WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
"""Flags of `open` that ask for more than reading."""


class Path(NamedTuple):
    """Where a call's arguments name a file: by a path, below a directory, or by a descriptor."""

    path: int | None = None
    below: int | None = None


class Machine(NamedTuple):
    """One processor family: its audit number and its system calls, by name."""

    audit: int
    numbers: dict[str, int]


_X86: Final = {
    "accept": 43, "accept4": 288, "acct": 163, "add_key": 248, "adjtimex": 159, "bind": 49,
    "bpf": 321, "chmod": 90, "chown": 92, "chroot": 161, "clock_settime": 227, "clone": 56,
    "clone3": 435, "connect": 42, "creat": 85, "delete_module": 176, "execve": 59, "execveat": 322,
    "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "fchown": 93, "fchownat": 260,
    "finit_module": 313, "flock": 73, "fork": 57, "fremovexattr": 199, "fsconfig": 431,
    "fsetxattr": 190, "fsmount": 432, "fsopen": 430, "futimesat": 261, "init_module": 175,
    "io_uring_enter": 426, "io_uring_register": 427, "io_uring_setup": 425, "ioprio_set": 251,
    "kcmp": 312, "kexec_load": 246, "keyctl": 250, "kill": 62, "lchown": 94, "link": 86,
    "linkat": 265, "listen": 50, "lremovexattr": 198, "lsetxattr": 189, "migrate_pages": 256,
    "mkdir": 83, "mkdirat": 258, "mknod": 133, "mknodat": 259, "mount": 165, "mount_setattr": 442,
    "move_mount": 429, "move_pages": 279, "mq_open": 240, "msgget": 68, "open": 2,
    "open_by_handle_at": 304, "open_tree": 428, "openat": 257, "openat2": 437,
    "perf_event_open": 298, "pidfd_getfd": 438, "pidfd_send_signal": 424, "pivot_root": 155,
    "prlimit64": 302, "process_madvise": 440, "process_mrelease": 448, "process_vm_readv": 310,
    "process_vm_writev": 311, "ptrace": 101, "quotactl": 179, "reboot": 169, "removexattr": 197,
    "rename": 82, "renameat": 264, "renameat2": 316, "request_key": 249, "rmdir": 84,
    "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "sched_setaffinity": 203,
    "sched_setattr": 314, "sched_setparam": 142, "sched_setscheduler": 144, "semget": 64,
    "setdomainname": 171, "sethostname": 170, "setns": 308, "setpgid": 109, "setpriority": 141,
    "setsid": 112, "settimeofday": 164, "setxattr": 188, "shmget": 29, "socket": 41,
    "socketpair": 53, "swapon": 167, "symlink": 88, "symlinkat": 266, "syslog": 103, "tgkill": 234,
    "tkill": 200, "truncate": 76, "umount2": 166, "unlink": 87, "unlinkat": 263, "unshare": 272,
    "userfaultfd": 323, "utime": 132, "utimensat": 280, "utimes": 235, "vfork": 58,
}  # fmt: skip
_ARM: Final = {
    "accept": 202, "accept4": 242, "acct": 89, "add_key": 217, "adjtimex": 171, "bind": 200,
    "bpf": 280, "chroot": 51, "clock_settime": 112, "clone": 220, "clone3": 435, "connect": 203,
    "delete_module": 106, "execve": 221, "execveat": 281, "fchmod": 52, "fchmodat": 53,
    "fchmodat2": 452, "fchown": 55, "fchownat": 54, "finit_module": 273, "flock": 32,
    "fremovexattr": 16, "fsconfig": 431, "fsetxattr": 7, "fsmount": 432, "fsopen": 430,
    "init_module": 105, "io_uring_enter": 426, "io_uring_register": 427, "io_uring_setup": 425,
    "ioprio_set": 30, "kcmp": 272, "kexec_load": 104, "keyctl": 219, "kill": 129, "linkat": 37,
    "listen": 201, "lremovexattr": 15, "lsetxattr": 6, "migrate_pages": 238, "mkdirat": 34,
    "mknodat": 33, "mount": 40, "mount_setattr": 442, "move_mount": 429, "move_pages": 239,
    "mq_open": 180, "msgget": 186, "open_by_handle_at": 265, "open_tree": 428, "openat": 56,
    "openat2": 437, "perf_event_open": 241, "pidfd_getfd": 438, "pidfd_send_signal": 424,
    "pivot_root": 41, "prlimit64": 261, "process_madvise": 440, "process_mrelease": 448,
    "process_vm_readv": 270, "process_vm_writev": 271, "ptrace": 117, "quotactl": 60,
    "reboot": 142, "removexattr": 14, "renameat": 38, "renameat2": 276, "request_key": 218,
    "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240, "sched_setaffinity": 122,
    "sched_setattr": 274, "sched_setparam": 118, "sched_setscheduler": 119, "semget": 190,
    "setdomainname": 162, "sethostname": 161, "setns": 268, "setpgid": 154, "setpriority": 140,
    "setsid": 157, "settimeofday": 170, "setxattr": 5, "shmget": 194, "socket": 198,
    "socketpair": 199, "swapon": 224, "symlinkat": 36, "syslog": 116, "tgkill": 131, "tkill": 130,
    "truncate": 45, "umount2": 39, "unlinkat": 35, "unshare": 97, "userfaultfd": 282,
    "utimensat": 88,
}  # fmt: skip

MACHINES: Final = {
    "x86_64": Machine(0xC000003E, _X86),
    "aarch64": Machine(0xC00000B7, _ARM),
}

FORKS: Final = frozenset({"fork", "vfork", "clone"})
SIGNALS: Final = frozenset({"kill", "tkill", "tgkill"})

OF_PROCESSES: Final = {
    "ioprio_set": 1,
    "migrate_pages": 0,
    "move_pages": 0,
    "prlimit64": 0,
    "sched_setaffinity": 0,
    "sched_setattr": 0,
    "sched_setparam": 0,
    "sched_setscheduler": 0,
    "setpriority": 1,
}
"""Calls that change how a process runs, and which argument names it; 0 is the caller."""

GROUPS: Final = {"ioprio_set": 1, "setpriority": 0}
"""The value of the first argument with which these name a process, and not a group or a user."""

PATHS: Final[dict[str, tuple[Path, ...]]] = {
    "open": (Path(0),),
    "openat": (Path(1, 0),),
    "creat": (Path(0),),
    "mkdir": (Path(0),),
    "mkdirat": (Path(1, 0),),
    "unlink": (Path(0),),
    "unlinkat": (Path(1, 0),),
    "rmdir": (Path(0),),
    "rename": (Path(0), Path(1)),
    "renameat": (Path(1, 0), Path(3, 2)),
    "renameat2": (Path(1, 0), Path(3, 2)),
    "link": (Path(0), Path(1)),
    "linkat": (Path(1, 0), Path(3, 2)),
    "symlink": (Path(1),),
    "symlinkat": (Path(2, 1),),
    "truncate": (Path(0),),
    "chmod": (Path(0),),
    "fchmod": (Path(None, 0),),
    "flock": (Path(None, 0),),
    "fchmodat": (Path(1, 0),),
    "fchmodat2": (Path(1, 0),),
    "utime": (Path(0),),
    "utimes": (Path(0),),
    "futimesat": (Path(1, 0),),
    "utimensat": (Path(1, 0),),
}
"""Calls that change files; the warden lets them pass inside the scratch folder."""

_ARGUMENT_DECIDES: Final = frozenset({"open", "openat", "socketpair", "clone"})
_NEVER: Final = frozenset({"clone3", "openat2"})
"""Refused as unknown: libraries fall back to the older call, whose arguments can be seen."""


def machine() -> Machine | None:
    """The processor this runs on; None for one whose numbers are not known here."""
    return MACHINES.get(platform.machine())


def program(numbers: Machine) -> bytes:
    """The seccomp program, as an array of ``struct sock_filter``."""
    known = numbers.numbers
    lines = [
        _step(_LOAD, _MACHINE),
        _step(_EQUAL, numbers.audit, 1, 0),
        _refuse(errno.EPERM),
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _X32, 0, 1),
        _refuse(errno.EPERM),
    ]
    for name in sorted(_NEVER & known.keys()):
        lines += [_step(_EQUAL, known[name], 0, 1), _refuse(errno.ENOSYS)]
    for name in sorted(known.keys() - _NEVER - _ARGUMENT_DECIDES):
        lines += [_step(_EQUAL, known[name], 0, 1), _step(_RETURN, _ASK)]
    lines += _when(known.get("open"), _if_any_bit(1, WRITES, then=_ASK, otherwise=_PASS))
    lines += _when(known["openat"], _if_any_bit(2, WRITES, then=_ASK, otherwise=_PASS))
    lines += _when(known["clone"], _if_any_bit(0, _CLONE_THREAD, then=_PASS, otherwise=_ASK))
    lines += _when(known["socketpair"], _only_connected_pairs())
    return b"".join([*lines, _step(_RETURN, _PASS)])


def _step(code: int, value: int, on_true: int = 0, on_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, on_true, on_false, value)


def _refuse(number: int) -> bytes:
    return _step(_RETURN, _ERRNO | number)


def _when(number: int | None, then: Iterable[bytes]) -> list[bytes]:
    """Run `then`, which returns, if the call's number is `number`."""
    if number is None:
        return []
    block = list(then)
    return [_step(_EQUAL, number, 0, len(block)), *block]


def _if_any_bit(argument: int, bits: int, *, then: int, otherwise: int) -> list[bytes]:
    return [
        _step(_LOAD, _ARGUMENTS + 8 * argument),
        _step(_ANY_BIT, bits, 0, 1),
        _step(_RETURN, then),
        _step(_RETURN, otherwise),
    ]


def _only_connected_pairs() -> list[bytes]:
    # The event loop wakes itself through one. A datagram pair could send elsewhere.
    return [
        _step(_LOAD, _ARGUMENTS),
        _step(_EQUAL, _AF_UNIX, 0, 4),
        _step(_LOAD, _ARGUMENTS + 8),
        _step(_AND, _SOCK_KINDS),
        _step(_EQUAL, _SOCK_STREAM, 0, 1),
        _step(_RETURN, _PASS),
        _step(_RETURN, _ASK),
    ]
