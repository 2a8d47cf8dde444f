"""The hardened container: what is asked of the daemon, and whether it did what was asked.

Everything here is about values: nothing talks to a daemon.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from backstop.adapters.bounds import Limits, surroundings
from backstop.adapters.docker.podman import (
    ITS_OWN_VARIABLES,
    WRITABLE,
    in_dockers_words,
    processes_of_a_user,
)
from backstop.adapters.docker.starting import limiting
from backstop.errors import SandboxError

USER: Final = "65534:65534"
HARNESS: Final = PurePosixPath("/opt/backstop/harness")
"""Where our own files are written as the container starts, each time anew."""
SCRATCH: Final = PurePosixPath("/opt/backstop/scratch")
"""The one folder in which a candidate may write. No image has it: it would take its mode."""

_MIB: Final = 1 << 20
_SCRATCH_BYTES: Final = 64 * _MIB
_HARNESS_BYTES: Final = 8 * _MIB
_OVERHEAD: Final = 64 * _MIB
"""For the warden beside the candidate, and the container's first process."""
_PROCESSES: Final = 256
_INODES: Final = 4096
_PAGE: Final = 4096
_HIDDEN: Final = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
)
_FIXED: Final = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_PATH: Final = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardened:
    """A container to be made: its image, what runs in it, and everything that bounds it.

    `config` and `host` are the daemon's words for it. `unset` are the variables that the image
    sets, and that the container must not see.
    """

    config: Mapping[str, Any]
    host: Mapping[str, Any]
    unset: tuple[str, ...] = ()
    podman: bool = False
    rootless: bool = False


def hardened(  # noqa: PLR0913 - a container is all of these
    *,
    image: str,
    built_in: Mapping[str, Any],
    command: Sequence[str],
    path: Sequence[str],
    world: int = 0,
    variables: Mapping[str, str] | None = None,
    needed: Sequence[PurePosixPath],
    labels: Mapping[str, str],
    limits: Limits,
    cpus: float,
    seccomp: str,
    podman: bool = False,
    rootless: bool = False,
) -> Hardened:
    """The container that runs `command` in `image`, whose configuration is `built_in`.

    `path` is what the interpreter imports from, `world` the one that the candidate meets,
    `variables` are more for it, `needed` the folders of the image that must be seen as they are,
    `seccomp` the profile's JSON, or where it lies for `podman`, which also bounds no inodes and
    has no first process to reap orphans. Where it is `rootless` too, the command takes its rlimits
    upon itself: up to its version 5.4 podman then passes none on. Raises `SandboxError` (slug
    ``image-volume``) for an image that puts a volume over one of the `needed`.
    """
    common = surroundings(path=":".join(path), scratch=str(SCRATCH), world=world)
    ours = {**common, **(variables or {}), "PATH": _PATH}
    theirs = [str(entry).partition("=")[0] for entry in built_in.get("Env") or ()]
    unset = tuple(name for name in dict.fromkeys(theirs) if name not in ours)
    host = _host(limits, cpus, seccomp, podman=podman, volumes=_covered(built_in, needed))
    if rootless:
        command = limiting(command, host["Ulimits"])
    return Hardened(
        config={
            "Image": image,
            "Entrypoint": [command[0]],
            "Cmd": list(command[1:]),
            "Env": [
                *(f"{name}={value}" for name, value in ours.items()),
                # A name alone takes away what the image sets. Podman can only empty it.
                *(f"{name}=" if podman else name for name in unset),
            ],
            "User": USER,
            "WorkingDir": "/",
            "Hostname": "candidate",
            "Labels": dict(labels),
            "Healthcheck": {"Test": ["NONE"]},
            "Tty": False,
            "OpenStdin": True,
            "StdinOnce": True,
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
        },
        host=host,
        unset=unset,
        podman=podman,
        rootless=rootless,
    )


def _host(
    limits: Limits, cpus: float, seccomp: str, *, podman: bool, volumes: Sequence[str]
) -> dict[str, Any]:
    memory = limits.memory + _SCRATCH_BYTES + _HARNESS_BYTES + _OVERHEAD
    seconds = math.ceil(limits.wall_s * max(1.0, cpus))
    tasks = processes_of_a_user()
    covered = [*volumes, *(path for path in WRITABLE if podman and path not in volumes)]
    return {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "Privileged": False,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true", f"seccomp={seccomp}"],
        "PidsLimit": _PROCESSES,
        # More than the harness takes for the candidate: what it allots runs out first, as it does
        # without a container, and an agent that is told so fails the same way.
        "Memory": memory,
        "MemorySwap": memory,
        "NanoCpus": int(cpus * 1_000_000_000),
        "IpcMode": "none",
        "CgroupnsMode": "private",
        "OomKillDisable": False,
        "Init": not podman,
        "Tmpfs": {
            str(SCRATCH): _tmpfs("rw", 1777, _SCRATCH_BYTES, None if podman else _INODES),
            str(HARNESS): _tmpfs("rw", 1777, _HARNESS_BYTES, None if podman else _INODES),
            **{path: _tmpfs("ro", 555, _PAGE, None if podman else 2) for path in covered},
        },
        "LogConfig": {"Type": "none", "Config": {}},
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "AutoRemove": False,
        "PublishAllPorts": False,
        "MaskedPaths": list(_HIDDEN),
        "ReadonlyPaths": list(_FIXED),
        "Ulimits": [
            {"Name": "nofile", "Soft": limits.files, "Hard": limits.files},
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "fsize", "Soft": limits.file_bytes, "Hard": limits.file_bytes},
            # The last resort against a loop whose driver is dead.
            {"Name": "cpu", "Soft": seconds, "Hard": seconds},
            *([{"Name": "nproc", "Soft": tasks, "Hard": tasks}] if podman else []),
        ],
    }


def _tmpfs(access: str, mode: int, size: int, inodes: int | None) -> str:
    bound = "" if inodes is None else f",nr_inodes={inodes}"
    return f"{access},noexec,nosuid,nodev,size={size}{bound},mode={mode}"


def _covered(built_in: Mapping[str, Any], needed: Sequence[PurePosixPath]) -> list[str]:
    """The image's volumes, each of which lies on the host's disk unless it is covered."""
    volumes = list(built_in.get("Volumes") or {})
    for name in volumes:
        # Two slashes in front are a root of their own, to Python alone.
        path = PurePosixPath(f"/{name.lstrip('/')}" if name.startswith("/") else name)
        kept = next((one for one in needed if _meet(path, one)), None)
        if kept is not None or not path.is_absolute() or ".." in path.parts:
            raise SandboxError(
                f"the image declares the volume {name}, which is the host's disk and would hide "
                f"{kept or 'part of the image'}; take VOLUME out of its Dockerfile",
                slug="image-volume",
            )
    return volumes


def _meet(one: PurePosixPath, other: PurePosixPath) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


_NONE_OF: Final = (
    "Binds",
    "CapAdd",
    "DeviceCgroupRules",
    "DeviceRequests",
    "Devices",
    "ExtraHosts",
    "GroupAdd",
    "Links",
    "Mounts",
    "PortBindings",
    "Sysctls",
    "VolumesFrom",
)
"""What a container of ours never has."""
_AS_ASKED: Final = (
    "AutoRemove",
    "CgroupnsMode",
    "Init",
    "IpcMode",
    "Memory",
    "MemorySwap",
    "NanoCpus",
    "NetworkMode",
    "PidsLimit",
    "PublishAllPorts",
    "ReadonlyRootfs",
)
_OWN: Final = frozenset({"", "none", "private"})
_SHARED: Final = ("PidMode", "UTSMode", "UsernsMode")


def weaknesses(inspected: Mapping[str, Any], asked: Hardened) -> list[str]:
    """Where a container, as the daemon shows it, is weaker than `asked`; empty if nowhere."""
    if asked.podman:
        inspected = in_dockers_words(inspected, asked.host)
    host, config = inspected.get("HostConfig") or {}, inspected.get("Config") or {}
    return [
        *_of_host(host, asked),
        *_of_config(config, asked),
        *(
            f"mount at {mount.get('Destination')}"
            for mount in inspected.get("Mounts") or ()
            if mount.get("Type") != "tmpfs"
        ),
    ]


def _of_host(host: Mapping[str, Any], asked: Hardened) -> Iterator[str]:
    for name in _AS_ASKED:
        if host.get(name) != asked.host[name]:
            yield f"{name} is {host.get(name)!r}, not {asked.host[name]!r}"
    for name in _NONE_OF:
        if host.get(name):
            yield f"{name} is {host.get(name)!r}, not empty"
    for name in _SHARED:
        if host.get(name, "") not in _OWN:
            yield f"{name} is {host[name]!r}, not the container's own"
    if host.get("Privileged") is not False:
        yield "Privileged is not false"
    if "ALL" not in (host.get("CapDrop") or ()):
        yield f"CapDrop is {host.get('CapDrop')!r}, not ALL"
    if set(host.get("SecurityOpt") or ()) != set(asked.host["SecurityOpt"]):
        yield "SecurityOpt is not what was asked for"
    yield from _of_resources(host, asked)


def _of_resources(host: Mapping[str, Any], asked: Hardened) -> Iterator[str]:
    if host.get("OomKillDisable"):
        yield "OomKillDisable is set"
    if dict(host.get("Tmpfs") or {}) != asked.host["Tmpfs"]:
        yield f"Tmpfs is {host.get('Tmpfs')!r}"
    if (host.get("LogConfig") or {}).get("Type") != "none":
        yield "LogConfig is not none"
    if (host.get("RestartPolicy") or {}).get("Name") not in {"", "no"}:
        yield "RestartPolicy is not no"
    takes_them_itself = asked.rootless and not host.get("Ulimits")
    if not takes_them_itself and _limits(host) != _limits(asked.host):
        yield f"Ulimits are {host.get('Ulimits')!r}"
    for name in ("MaskedPaths", "ReadonlyPaths"):
        if not set(asked.host[name]) <= set(host.get(name) or ()):
            yield f"{name} are open"


def _limits(host: Mapping[str, Any]) -> set[tuple[str, int, int]]:
    return {(one["Name"], one["Soft"], one["Hard"]) for one in host.get("Ulimits") or ()}


def _of_config(config: Mapping[str, Any], asked: Hardened) -> Iterator[str]:
    for name in ("Image", "Entrypoint", "Cmd", "User", "WorkingDir", "Tty", "StdinOnce"):
        if config.get(name) != asked.config[name]:
            yield f"{name} is {config.get(name)!r}, not {asked.config[name]!r}"
    if (config.get("Healthcheck") or {}).get("Test") != ["NONE"]:
        yield "Healthcheck is not NONE"
    its_own = ITS_OWN_VARIABLES if asked.podman else frozenset()
    wanted = [one for one in asked.config["Env"] if one.partition("=")[0] not in its_own]
    if sorted(config.get("Env") or ()) != sorted(wanted):
        yield "Env is not what was asked for"
