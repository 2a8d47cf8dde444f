"""Ways out through system calls that no agent needs.

They get arguments that are refused only after the permission was granted, so nothing happens
where one is let through: an error that comes from behind the permission is a way out, too.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import signal
import struct
from functools import partial
from typing import Any, Final

from tests.docker.ways.entry import way

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_ARM: Final = platform.machine() == "aarch64"
_STOPPED: Final = (errno.EPERM, errno.EACCES, errno.ENOSYS)
_AT_FDCWD: Final = -100
_NEW: Final = {"user": 0x10000000, "net": 0x40000000, "mount": 0x20000, "pid": 0x20000000}


def _call(number: int, *arguments: int | bytes) -> object:
    """A system call of ours; raises OSError if it was refused for who we are."""
    given = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    answer = _LIBC.syscall(ctypes.c_long(number), *given)
    code = ctypes.get_errno()
    if answer < 0 and code in _STOPPED:
        raise OSError(code, os.strerror(code))
    return "done" if answer >= 0 else f"stopped later, by {errno.errorcode[code]}"


_DEVICE: Final = os.makedev(1, 3)
_CHARACTER: Final = 0o20666
_CLONE3: Final = struct.pack("8Q", _NEW["user"], 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
_PARENT: Final = -(1 << 40)
"""Stands for the process that waits for the attempt."""

_CALLS: Final[dict[str, tuple[int, int, tuple[int | bytes, ...]]]] = {
    # name: number on x86-64, number on arm64, arguments
    "accounting": (163, 89, (b"/nowhere",)),
    "add_key": (248, 217, (0, 0, 0, 0, -3)),
    "bpf": (321, 280, (0, 0, 0)),
    "chroot": (161, 51, (b"/",)),
    "clone into a user namespace": (56, 220, (_NEW["user"] | signal.SIGCHLD, 0, 0, 0, 0)),
    "clone3 into a user namespace": (435, 435, (_CLONE3, len(_CLONE3))),
    "delete_module": (176, 106, (0, 0)),
    "fanotify": (300, 262, (0, 0)),
    "finit_module": (313, 273, (-1, 0, 0)),
    "fsmount": (432, 432, (-1, 0, 0)),
    "fsopen": (430, 430, (b"tmpfs", 0)),
    "init_module": (175, 105, (0, 0, 0)),
    "io_uring": (425, 425, (4, bytes(120))),
    "kexec": (246, 104, (0, 0, 0, 0xFFFF)),
    "kexec from a file": (320, 294, (-1, -1, 0, 0, 0)),
    "keyctl": (250, 219, (0, -3, 0)),
    "kernel log": (103, 116, (10, 0, 0)),
    "mknod": (259, 33, (_AT_FDCWD, b"/tmp/node", _CHARACTER, _DEVICE)),
    "mount": (165, 40, (b"t", b"/tmp", b"tmpfs", 0, 0)),
    "mount_setattr": (442, 442, (-1, 0, 0, 0, 0)),
    "move_mount": (429, 429, (-1, 0, -1, 0, 0)),
    "name_to_handle_at": (303, 264, (_AT_FDCWD, 0, 0, 0, 0)),
    "negative niceness": (141, 140, (0, 0, -5)),
    "open_by_handle_at": (304, 265, (-1, 0, 0)),
    "open_tree": (428, 428, (_AT_FDCWD, b"/", 1)),
    "perf_event_open": (298, 241, (0, 0, -1, -1, 0)),
    "personality": (135, 92, (0x0040000,)),
    "pidfd_getfd": (438, 438, (-1, 0, 0)),
    "pivot_root": (155, 41, (b"/nowhere", b"/nowhere")),
    "process_vm_readv": (310, 270, (_PARENT, 0, 0, 0, 0, 0)),
    "process_vm_writev": (311, 271, (_PARENT, 0, 0, 0, 0, 0)),
    "ptrace": (101, 117, (0x4206, _PARENT, 0, 0)),
    "ptrace of oneself": (101, 117, (0, 0, 0, 0)),
    "real-time input and output": (251, 30, (1, 0, 1 << 13)),
    "reboot": (169, 142, (0, 0, 0, 0)),
    "request_key": (249, 218, (0, 0, 0, -3)),
    "secure bits": (157, 167, (28, 0, 0, 0, 0)),
    "setgid 0": (106, 144, (0,)),
    "setgroups": (116, 159, (1, struct.pack("i", 0))),
    "sethostname": (170, 161, (b"", -1)),
    "setns": (308, 268, (-1, 0)),
    "setuid 0": (105, 146, (0,)),
    "swapoff": (168, 225, (0,)),
    "swapon": (167, 224, (0, 0)),
    "umount": (166, 39, (b"/proc/asound", 2)),
    "unshare mounts": (272, 97, (_NEW["mount"],)),
    "unshare the network": (272, 97, (_NEW["net"],)),
    "unshare processes": (272, 97, (_NEW["pid"],)),
    "unshare users": (272, 97, (_NEW["user"],)),
    "userfaultfd": (323, 282, (0,)),
}


def _attempt(row: tuple[int, int, tuple[int | bytes, ...]], _: dict[str, Any]) -> object:
    number, on_arm, arguments = row
    given = [os.getppid() if item == _PARENT else item for item in arguments]
    return _call(on_arm if _ARM else number, *given)


for _name, _row in _CALLS.items():
    way(_name)(partial(_attempt, _row))


def _machine_code(code: bytes) -> int:
    """What a function of machine code returns."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    place = ctypes.addressof(ctypes.c_char.from_buffer(page))
    answer = int(ctypes.CFUNCTYPE(ctypes.c_int)(place)())
    if answer < 0:
        raise OSError(-answer, os.strerror(-answer))
    return answer


if not _ARM:

    @way("the 32-bit calls")
    def _thirty_two_bits(outside: dict[str, Any]) -> object:
        return _machine_code(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # eax = getpid; int 0x80

    @way("port I/O")
    def _ports(outside: dict[str, Any]) -> object:
        return _call(172, 3)

    @way("the x32 calls")
    def _x32(outside: dict[str, Any]) -> object:
        return _call(0x40000000 + 39)
