"""Containers that hold nobody back: the control for whatever a hardened one refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import docker

from tests.docker.outside import Outside

_CAPABILITIES: Final = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP "
    "LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER "
    "SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE "
    "SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP "
    "MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF "
    "CHECKPOINT_RESTORE"
)
"""In the order of the kernel's bits."""

_DEVICES: Final = "fuse kvm loop-control net/tun uinput vhost-net vsock mem kmsg port"


def run(
    client: docker.DockerClient, image: str, command: list[str], *, outside: Outside, network: str
) -> bytes:
    """What a command says as root, with every power that this machine itself has."""
    config = client.api.create_host_config(
        network_mode=network,
        binds=[
            f"{outside.path.parent}:/outside",
            f"{outside.daemon}:/var/run/docker.sock",
            "/sys/fs/cgroup:/sys/fs/cgroup",
        ],
        cap_add=["ALL"],
        cap_drop=_lacking(),
        devices=[f"{path}:{path}:rwm" for path in _devices()],
        dns=[outside.host],
        security_opt=["seccomp=unconfined", "apparmor=unconfined"],
    )
    config["MaskedPaths"], config["ReadonlyPaths"] = [], []
    made: dict[str, Any] = client.api.create_container(image, command, host_config=config)
    container = client.containers.get(made["Id"])
    try:
        container.start()
        container.wait()
        said: bytes = container.logs()
        return said
    finally:
        container.remove(force=True)


def _lacking() -> list[str]:
    """Capabilities that not even this machine's root has; to ask for them would be refused."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    held = int(status.partition("CapBnd:")[2].split()[0], 16)
    names = enumerate(_CAPABILITIES.split())
    return [name for bit, name in names if not held >> bit & 1]


def _devices() -> list[Path]:
    named = [path for name in _DEVICES.split() if (path := Path("/dev") / name).exists()]
    disks = [path for path in sorted(Path("/dev").iterdir()) if path.is_block_device()]
    return [*named, *disks[:1]]
