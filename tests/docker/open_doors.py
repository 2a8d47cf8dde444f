"""Containers that hold nobody back: the control for whatever a hardened one refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Final

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


def open_doors(
    image: str, command: list[str], *, outside: Outside, network: str
) -> dict[str, object]:
    """A container for root with every power of this machine, in the daemon's words."""
    return {
        "Image": image,
        "Cmd": command,
        "HostConfig": {
            "NetworkMode": network,
            "Binds": [
                f"{outside.path.parent}:/outside",
                f"{outside.daemon}:/var/run/docker.sock",
                "/sys/fs/cgroup:/sys/fs/cgroup",
            ],
            "CapAdd": ["ALL"],
            "CapDrop": _lacking(),
            "Devices": [
                {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rwm"}
                for path in _devices()
            ],
            "Dns": [outside.host],
            "SecurityOpt": ["seccomp=unconfined", "apparmor=unconfined"],
            "MaskedPaths": [],
            "ReadonlyPaths": [],
        },
    }


def _lacking() -> list[str]:
    """Capabilities that not even this machine's root has; to ask for them would be refused."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    held = int(status.partition("CapBnd:")[2].split()[0], 16)
    names = enumerate(_CAPABILITIES.split())
    return [name for bit, name in names if not held >> bit & 1]


def _devices() -> list[str]:
    named = [path for name in _DEVICES.split() if (path := Path("/dev") / name).exists()]
    disks = [path for path in sorted(Path("/dev").iterdir()) if path.is_block_device()]
    return [str(path) for path in (*named, *disks[:1])]
