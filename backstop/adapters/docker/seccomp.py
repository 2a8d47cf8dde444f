"""The system calls a container may make: a list of what is allowed, and nothing else.

What is not on it fails with EPERM. Only the machine's own calling convention is known, so that
the 32-bit one ends the process. The harness inside puts a filter of its own on top (it needs
`seccomp`, `prctl` and Landlock for that); this list holds where that one is not, or not yet.
"""

from __future__ import annotations

import json
from typing import Final

from backstop.errors import SandboxError

_FILES: Final = """
    access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat
    faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync
    fgetxattr flistxattr flock fstat fstatfs fsync ftruncate futimesat getcwd getdents getdents64
    getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch ioctl lchown lgetxattr
    link linkat listxattr llistxattr lseek lstat mkdir mkdirat newfstatat open openat openat2 pipe
    pipe2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv
    rename renameat renameat2 rmdir sendfile stat statfs statx symlink symlinkat sync
    sync_file_range syncfs truncate umask unlink unlinkat utime utimensat utimes write writev
"""
_MEMORY: Final = """
    brk madvise membarrier mincore mlock mlock2 mlockall mmap mprotect mremap msync munlock
    munlockall munmap pkey_alloc pkey_free pkey_mprotect
"""
_PROCESSES: Final = """
    arch_prctl capget execve exit exit_group fork futex futex_requeue futex_wait futex_waitv
    futex_wake get_robust_list get_thread_area getcpu getegid geteuid getgid getgroups getpgid
    getpgrp getpid getppid getpriority getresgid getresuid getrlimit getrusage getsid gettid getuid
    ioprio_get kill pidfd_open pidfd_send_signal prctl prlimit64 rseq rt_sigaction rt_sigpending
    rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
    sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
    sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
    sched_setscheduler sched_yield set_robust_list set_thread_area set_tid_address setfsgid
    setfsuid setgid setgroups setpgid setpriority setregid setresgid setresuid setreuid setrlimit
    setsid setuid sigaltstack tgkill times tkill vfork wait4 waitid
"""
_WAITING: Final = """
    alarm clock_getres clock_gettime clock_nanosleep epoll_create epoll_create1 epoll_ctl
    epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 getitimer gettimeofday nanosleep pause poll
    ppoll pselect6 restart_syscall select setitimer signalfd signalfd4 time timer_create
    timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime
    timerfd_settime
"""
_TALKING: Final = """
    accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg
    sendmmsg sendmsg sendto setsockopt shutdown
"""
_HOLDING_BACK: Final = """
    landlock_add_rule landlock_create_ruleset landlock_restrict_self seccomp
"""
_ABOUT_THE_MACHINE: Final = "getrandom sysinfo uname"
_GROUPS: Final = (
    _FILES,
    _MEMORY,
    _PROCESSES,
    _WAITING,
    _TALKING,
    _HOLDING_BACK,
    _ABOUT_THE_MACHINE,
)
_PLAIN: Final = frozenset(name for group in _GROUPS for name in group.split())

_UNKNOWN: Final = ("clone3", "execveat", "memfd_create", "memfd_secret")
"""Refused as unknown. `clone3` has its flags in memory, where no filter sees them: libraries go
back to `clone`. The others run or hold a program that lies in no file."""

_NEW_NAMESPACES: Final = 0x7E02_0000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""

# Linux's numbers: the daemon's kernel is meant, not this machine's.
_ENOSYS: Final = 38
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_STREAM, _DATAGRAM, _PACKETS = 1, 2, 5
_TCP, _UDP = 6, 17
_KINDS: Final = 0xF
"""The bits of a socket's type that are not flags."""
_SOCKETS: Final = {
    (_AF_UNIX, _STREAM): (0,),
    (_AF_UNIX, _DATAGRAM): (0,),
    (_AF_UNIX, _PACKETS): (0,),
    (_AF_INET, _STREAM): (0, _TCP),
    (_AF_INET, _DATAGRAM): (0, _UDP),
    (_AF_INET6, _STREAM): (0, _TCP),
    (_AF_INET6, _DATAGRAM): (0, _UDP),
}
"""Families and types that a network of one's own holds, and their protocols. Virtual machine
sockets, netlink and others know no such network, or are an attack surface of the kernel's."""

_ARCHITECTURES: Final = {
    "amd64": "SCMP_ARCH_X86_64",
    "x86_64": "SCMP_ARCH_X86_64",
    "arm64": "SCMP_ARCH_AARCH64",
    "aarch64": "SCMP_ARCH_AARCH64",
}


def profile(machine: str) -> str:
    """The profile for a daemon on `machine` (``amd64``, ``arm64``), as the JSON that it reads.

    Raises `SandboxError` for a machine whose system calls are not known here.
    """
    architecture = _ARCHITECTURES.get(machine)
    if architecture is None:
        raise SandboxError(
            f"the daemon runs on {machine}, and candidates can be held back on amd64 and arm64 "
            "only; use a runner of one of these",
            slug="sandbox-machine",
        )
    rules: list[dict[str, object]] = [
        _allowed(*sorted(_PLAIN)),
        _allowed("clone", args=[_masked(0, _NEW_NAMESPACES, 0)]),
        _allowed("socketpair", args=[_equal(0, _AF_UNIX)]),
        *(
            _allowed("socket", args=[_equal(0, family), _masked(1, _KINDS, kind), _equal(2, of)])
            for (family, kind), protocols in _SOCKETS.items()
            for of in protocols
        ),
        {"names": list(_UNKNOWN), "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS},
    ]
    return json.dumps(
        {
            "defaultAction": "SCMP_ACT_ERRNO",
            "architectures": [architecture],
            "syscalls": rules,
        },
        separators=(",", ":"),
    )


def _allowed(*names: str, args: list[dict[str, object]] | None = None) -> dict[str, object]:
    return {"names": list(names), "action": "SCMP_ACT_ALLOW", "args": args or []}


def _equal(index: int, value: int) -> dict[str, object]:
    return {"index": index, "value": value, "op": "SCMP_CMP_EQ"}


def _masked(index: int, mask: int, value: int) -> dict[str, object]:
    return {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
