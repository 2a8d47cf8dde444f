"""Ways out over files: the root, mounts, devices, and what the kernel shows as files."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path
from typing import Any, NoReturn

from tests.docker.ways.entry import way


@way("write to the root")
def _root(outside: dict[str, Any]) -> object:
    deeper = ("/usr/local/bin", "/var/cache", "/var/lib", "/var/tmp", *sys.path)  # noqa: S108
    folders = {Path("/"), *Path("/").iterdir(), *map(Path, deeper)}
    return any_of([found for folder in sorted(folders) if (found := _made(folder, outside))])


@way("write to another mount")
def _mounts(outside: dict[str, Any]) -> object:
    table = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    places = {Path(line.split()[1]) for line in table}
    return any_of([found for place in sorted(places) if (found := _made(place, outside))])


def _made(place: Path, outside: dict[str, Any]) -> str | None:
    """The name of a file that could be made in a folder, or of one that could be opened."""
    if any(place == Path(folder) for folder in outside["scratch"]):
        return None
    try:
        if place.is_dir():
            file = place / "backstop-was-here"
            os.close(os.open(file, os.O_CREAT | os.O_WRONLY))
            file.unlink()
        elif not place.exists() or place.is_char_device():
            return None
        else:
            os.close(os.open(place, os.O_WRONLY))
    except OSError:
        return None
    return str(place)


@way("a file of the kernel, to write")
def _kernel_files(outside: dict[str, Any]) -> object:
    return _opened(
        os.O_WRONLY,
        "/proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe "
        "/proc/sys/vm/panic_on_oom /proc/sys/net/ipv4/ip_forward /proc/sys/fs/binfmt_misc/register "
        "/proc/irq/default_smp_affinity /proc/mtrr "
        "/sys/kernel/uevent_helper /sys/kernel/mm/ksm/run /sys/power/state",
    )


@way("memory of the kernel, to read")
def _kernel_memory(outside: dict[str, Any]) -> object:
    return _opened(os.O_RDONLY, "/proc/kcore /dev/mem /dev/kmsg /dev/port /proc/kmsg")


@way("a device")
def _devices(outside: dict[str, Any]) -> object:
    # Named one by one: merely to open some others does something, such as to arm a watchdog.
    return _opened(
        os.O_RDWR,
        "/dev/fuse /dev/kvm /dev/loop-control /dev/net/tun /dev/uinput /dev/vhost-net /dev/vsock",
    )


@way("a disk")
def _disks(outside: dict[str, Any]) -> object:
    disks = [str(path) for path in Path("/dev").iterdir() if path.is_block_device()]
    return _opened(os.O_RDONLY, " ".join(disks))


@way("a control group")
def _groups(outside: dict[str, Any]) -> object:
    found = [
        str(path)
        for name in ("release_agent", "cgroup.procs", "devices.allow", "tasks", "memory.max")
        for path in sorted(Path("/sys/fs/cgroup").glob(f"**/{name}"))
    ]
    return _opened(os.O_WRONLY, " ".join(found))


def _opened(flags: int, names: str) -> object:
    opened = []
    stopped = OSError(errno.ENOENT, "there is none")
    for name in names.split():
        try:
            os.close(os.open(name, flags))
            opened.append(name)
        except FileNotFoundError:
            continue
        except OSError as error:
            stopped = error
    if not opened:
        raise stopped
    return opened


def any_of(found: list[Any]) -> object:
    """What was found, if anything."""
    if not found:
        raise OSError(errno.EACCES, "none of them")
    return found[:4]


@way("run a file of one's own")
def _own_file(outside: dict[str, Any]) -> object:
    file = Path(outside["scratch"][0]) / "true"
    shutil.copy(shutil.which("true") or "/bin/true", file)
    file.chmod(0o700)
    return _runs(str(file))


@way("run a file that is in no folder")
def _memfd(outside: dict[str, Any]) -> object:
    file = os.memfd_create("true", 0)
    os.write(file, Path(shutil.which("true") or "/bin/true").read_bytes())
    return _runs(f"/proc/self/fd/{file}")


def _runs(program: str) -> NoReturn:
    # At the end of a program that was let run stands its exit code, not an error of ours.
    os.execve(program, ["true"], {})  # noqa: S606 - it is what is tried
