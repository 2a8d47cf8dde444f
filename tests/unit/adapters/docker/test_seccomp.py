"""The list of system calls: what is on it, what never is, and that it is one at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backstop.adapters.docker.seccomp import profile
from backstop.errors import SandboxError

WAYS_OUT = """
    acct add_key adjtimex bpf chroot clock_adjtime clock_settime create_module delete_module
    fanotify_init finit_module fsconfig fsmount fsopen fspick get_kernel_syms init_module io_cancel
    io_setup io_submit io_uring_enter io_uring_register io_uring_setup ioperm iopl ioprio_set kcmp
    kexec_file_load kexec_load keyctl lookup_dcookie mknod mknodat modify_ldt mount mount_setattr
    move_mount move_pages mq_open msgget name_to_handle_at nfsservctl open_by_handle_at open_tree
    perf_event_open personality pidfd_getfd pivot_root process_madvise process_mrelease
    process_vm_readv process_vm_writev ptrace query_module quotactl quotactl_fd reboot
    remap_file_pages request_key semget setdomainname sethostname setns settimeofday shmat shmget
    socketcall splice swapoff swapon syslog tee umount umount2 unshare uselib userfaultfd ustat
    vhangup vm86 vmsplice
"""
AS_UNKNOWN = ["clone3", "execveat", "memfd_create", "memfd_secret"]
NEW_NAMESPACES = [0x20000, *(1 << bit for bit in range(25, 31))]


def rules(machine: str = "amd64") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(profile(machine))["syscalls"]
    return found


def allowed(name: str, *args: int) -> bool:
    """Whether a call with these arguments passes, by the rules as the kernel reads them."""
    return any(
        name in rule["names"] and all(_holds(one, args) for one in rule["args"])
        for rule in rules()
        if rule["action"] == "SCMP_ACT_ALLOW"
    )


def _holds(condition: dict[str, Any], args: tuple[int, ...]) -> bool:
    value = args[condition["index"]]
    if condition["op"] == "SCMP_CMP_EQ":
        return bool(value == condition["value"])
    assert condition["op"] == "SCMP_CMP_MASKED_EQ"
    return bool(value & condition["value"] == condition["valueTwo"])


def test_what_is_not_on_the_list_fails() -> None:
    for machine in ("amd64", "arm64"):
        assert json.loads(profile(machine))["defaultAction"] == "SCMP_ACT_ERRNO"
        assert {rule["action"] for rule in rules(machine)} == {"SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"}


@pytest.mark.parametrize("name", [*WAYS_OUT.split(), *AS_UNKNOWN])
def test_no_way_out_is_on_the_list(name: str) -> None:
    named = {one for rule in rules() if rule["action"] == "SCMP_ACT_ALLOW" for one in rule["names"]}
    assert name not in named
    assert "read" in named  # what is looked for is found where it is


def test_what_hides_its_arguments_is_unknown_so_that_libraries_take_another_call() -> None:
    [refused] = [rule for rule in rules() if rule["action"] == "SCMP_ACT_ERRNO"]
    assert sorted(refused["names"]) == AS_UNKNOWN
    assert refused["errnoRet"] == 38


@pytest.mark.parametrize(
    "name",
    ["seccomp", "prctl", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"],
)
def test_the_harness_can_put_its_own_barrier_on_top(name: str) -> None:
    assert allowed(name)


@pytest.mark.parametrize("flag", NEW_NAMESPACES)
def test_a_process_cannot_be_made_in_a_new_namespace(flag: int) -> None:
    assert not allowed("clone", flag | 17)
    assert not allowed("clone", flag)


def test_processes_and_threads_can_be_made() -> None:
    assert allowed("clone", 17)
    assert allowed("clone", 0x3D0F00)


@pytest.mark.parametrize(
    ("family", "kind", "protocol"),
    [
        (16, 3, 0),  # netlink
        (17, 3, 0),  # packet
        (38, 5, 0),  # the kernel's ciphers
        (40, 1, 0),  # virtual machine sockets
        (44, 3, 0),  # XDP
        (2, 3, 1),  # raw
        (2, 3, 255),
        (10, 3, 58),
        (2, 2, 1),  # ping
        (10, 2, 58),
        (2, 1, 132),  # SCTP
        (2, 1, 262),  # MPTCP
        (2, 10, 0),
        (1, 3, 0),
    ],
)
def test_a_socket_that_knows_no_network_of_ones_own_cannot_be_made(
    family: int, kind: int, protocol: int
) -> None:
    assert not allowed("socket", family, kind, protocol)
    assert not allowed("socket", family, kind | 0x80800, protocol)


@pytest.mark.parametrize(
    ("family", "kind", "protocol"), [(1, 1, 0), (1, 2, 0), (2, 1, 6), (2, 2, 17), (10, 0x80801, 0)]
)
def test_an_event_loop_and_a_local_server_have_their_sockets(
    family: int, kind: int, protocol: int
) -> None:
    assert allowed("socket", family, kind, protocol)


def test_a_pair_of_sockets_is_local() -> None:
    assert allowed("socketpair", 1)
    assert not allowed("socketpair", 40)


@pytest.mark.parametrize(
    ("machine", "architecture"),
    [("amd64", "SCMP_ARCH_X86_64"), ("arm64", "SCMP_ARCH_AARCH64")],
)
def test_only_the_machines_own_calling_convention_is_known(machine: str, architecture: str) -> None:
    assert json.loads(profile(machine))["architectures"] == [architecture]


def test_a_machine_without_a_list_is_refused() -> None:
    with pytest.raises(SandboxError, match="riscv64") as caught:
        profile("riscv64")
    assert caught.value.slug == "sandbox-machine"


def test_no_call_is_named_twice() -> None:
    plain = rules()[0]["names"]
    assert len(plain) == len(set(plain))
    assert plain == sorted(plain)
