"""Podman's daemon speaks as Docker's does, with exceptions: those of version 4, and what to do.

It opens a profile by its path, sets every variable it is given a name of, mounts folders that can
be written to beside a root that cannot, and shows a container in words of its own.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, Final

WRITABLE: Final = ("/run", "/tmp", "/var/tmp")  # noqa: S108 - these are what is to be covered
"""Where it mounts a folder to write in beside a read-only root, unless something lies there."""
ITS_OWN_VARIABLES: Final = frozenset({"HOSTNAME", "TERM", "container"})
"""What it sets in each container by itself, and so in each image that is made of one."""

_DEFAULT_POWERS: Final = frozenset(
    """
    AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE NET_RAW SETFCAP
    SETGID SETPCAP SETUID SYS_CHROOT
    """.split()  # noqa: SIM905 - a list of names
)
_PROPAGATION: Final = frozenset({"rprivate", "tmpcopyup"})
_MOST_PROCESSES: Final = 1 << 12
_KILLED: Final = 128 + signal.SIGKILL


@contextlib.contextmanager
def as_file(text: str) -> Iterator[str]:
    """A path under which podman, on this machine and of this user, finds `text` for a while."""
    with tempfile.NamedTemporaryFile("w", prefix="backstop-", suffix=".json") as file:
        file.write(text)
        file.flush()
        yield file.name


def is_rootless(info: Mapping[str, Any]) -> bool:
    """Does the daemon, by what it says of itself, run without rights? Then it sets no rlimits."""
    # Its version 4 says it in a field of its own, newer ones as Docker does.
    return info.get("Rootless") is True or "name=rootless" in (info.get("SecurityOptions") or ())


def was_killed(state: Mapping[str, Any]) -> bool:
    """Did somebody outside of a container end its first process, by how podman shows its end?

    Where it was none of us, memory ran out: podman says so itself from its version 5 on.
    """
    return state.get("ExitCode") == _KILLED


def processes_of_a_user() -> int:
    """A bound that podman may set: its own default is more than many machines allow."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return _MOST_PROCESSES if hard == resource.RLIM_INFINITY else min(hard, _MOST_PROCESSES)


def in_dockers_words(inspected: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """What podman shows of a container, as Docker would show the same; `asked` is its host part.

    It does not show which parts of /proc are hidden (they are, in a container without
    privileges), whether control groups are the container's own, and whether its input ends with
    whoever it is from: these are taken to be as asked.
    """
    host = dict(inspected.get("HostConfig") or {})
    config = dict(inspected.get("Config") or {})
    host["Init"] = bool(host.get("Init"))
    host["CgroupnsMode"] = host.get("CgroupnsMode") or asked["CgroupnsMode"]
    if host.get("IpcMode") == "shareable":  # its own, in which others could be put
        host["IpcMode"] = "none"
    if set(host.get("CapDrop") or ()) >= _DEFAULT_POWERS:
        host["CapDrop"] = ["ALL"]
    host["SecurityOpt"] = [_option(one) for one in host.get("SecurityOpt") or ()]
    host["Tmpfs"] = {
        path: ",".join(one for one in str(options).split(",") if one not in _PROPAGATION)
        for path, options in (host.get("Tmpfs") or {}).items()
    }
    host["Ulimits"] = [
        {**one, "Name": str(one["Name"]).lower().removeprefix("rlimit_")}
        for one in host.get("Ulimits") or ()
    ]
    for name in ("PidMode", "UTSMode"):
        host[name] = host.get(name) or "private"
    for name in ("MaskedPaths", "ReadonlyPaths"):
        host[name] = asked[name] if host.get(name) is None else host[name]
    config["StdinOnce"] = True
    config["Env"] = [
        one for one in config.get("Env") or () if one.partition("=")[0] not in ITS_OWN_VARIABLES
    ]
    config["Image"] = inspected.get("Image")
    return {**inspected, "HostConfig": host, "Config": config}


def _option(shown: str) -> str:
    return "no-new-privileges:true" if shown == "no-new-privileges" else shown
