"""A Docker daemon of our own for tests: private, without systemd, and gone with its owner.

The first test that asks starts a keeper, which starts the daemon and ends it when the test
session is over, however it ends. Run as a module it does the same for a person:

    python -m tests.docker.daemon start FOLDER    prints ``export DOCKER_HOST=…``
    python -m tests.docker.daemon stop FOLDER
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import docker

from tests.docker.network import bridge

SOCKET: Final = "docker.sock"
_READY: Final = "ready"
_PACKAGES: Final = ("docker.io", "iptables")
_PROGRAMS: Final = ("dockerd", "containerd", "runc", "iptables")
_STARTS_WITHIN_S: Final = 60.0
_ENDS_WITHIN_S: Final = 30.0
_PAUSE_S: Final = 0.05
_DETACH: Final = 2
_ROOT: Final = Path(__file__).parents[2]


class Unavailable(Exception):
    """No daemon can be had on this machine: why, in one line."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder while others wait; it leaves no file behind."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def start(folder: Path, *, owner: int | None = None) -> str:
    """The URL of the daemon in `folder`, started if it does not run yet.

    It ends with process `owner`, or by `stop` where there is none. Raises `Unavailable`.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.parent):
        if not answers(folder / SOCKET):
            _install()
            stop(folder)
            folder.mkdir(mode=0o700)
            _start_keeper(folder, owner)
    return f"unix://{folder / SOCKET}"


def stop(folder: Path) -> None:
    """End the daemon in `folder` and its keeper, and wait until nothing is left of either."""
    with contextlib.suppress(OSError, ValueError):
        keeper = os.pidfd_open(int((folder / "keeper.pid").read_text()))
        with os.fdopen(keeper), selectors.DefaultSelector() as gone:
            signal.pidfd_send_signal(keeper, signal.SIGTERM)
            gone.register(keeper, selectors.EVENT_READ)
            gone.select(2 * _ENDS_WITHIN_S)
    _remove(folder)


def answers(path: Path) -> bool:
    """Does a daemon listen at this socket, and answer?"""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(5)
        try:
            line.connect(str(path))
            line.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return b" 200 " in line.recv(64)
        except OSError:
            return False


def _install() -> None:
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if os.geteuid() != 0:
        raise Unavailable("only root can start a private Docker daemon")
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise Unavailable(f"{missing[0]} is not installed, and there is no apt-get to install it")
    quiet = ("apt-get", "-qq", "-o", "Dpkg::Use-Pty=0")
    for command in ((*quiet, "update"), (*quiet, "install", "-y", "--no-install-recommends")):
        done = subprocess.run(
            [*command, *(_PACKAGES if "install" in command else ())],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            check=False,
            text=True,
        )
        if done.returncode:
            said = " ".join(done.stderr.split())[-300:]
            raise Unavailable(f"{shlex.join(command)} failed: {said}")
    if (lost := next((name for name in missing if shutil.which(name) is None), None)) is not None:
        raise Unavailable(f"{lost} is not there, although apt-get installed it")


def _start_keeper(folder: Path, owner: int | None) -> None:
    # A session of its own: Ctrl-C at the tests must not end the keeper before it has cleaned up.
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.docker.daemon", "keep", str(folder), str(owner or 0)],
        cwd=_ROOT,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert keeper.stdout is not None
    with keeper.stdout:
        said = keeper.stdout.readline().decode(errors="replace").strip()
    if said != _READY:
        keeper.wait()
        raise Unavailable(f"dockerd does not start: {said}")
    keeper.returncode = 0  # It outlives this process on purpose, and nobody waits for it.


def keep(folder: Path, owner: int) -> None:
    """Run a daemon in `folder` for as long as `owner` lives (0: until SIGTERM), then clear up.

    Says one line, that the daemon is ready or why it is not, and nothing any more.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    (folder / "keeper.pid").write_text(str(os.getpid()))
    try:
        with (
            selectors.DefaultSelector() as end,
            bridge(f"bk{os.getpid()}") as link,
            _dockerd(folder, link) as daemon,
        ):
            end.register(os.pidfd_open(daemon.pid), selectors.EVENT_READ)
            if owner:
                end.register(os.pidfd_open(owner), selectors.EVENT_READ)
            _wait_for_answers(folder, daemon)
            _say(_READY)
            end.select()
    except (OSError, Unavailable) as why:
        _say(str(why))
    finally:
        _remove(folder)


def _wait_for_answers(folder: Path, daemon: subprocess.Popen[bytes]) -> None:
    given_up = time.monotonic() + _STARTS_WITHIN_S
    while not answers(folder / SOCKET):
        if daemon.poll() is not None or time.monotonic() > given_up:
            log = (folder / "dockerd.log").read_text(encoding="utf-8", errors="replace")
            raise Unavailable(" / ".join(log.splitlines()[-3:])[-600:] or "it does not answer")
        time.sleep(_PAUSE_S)


def _say(line: str) -> None:
    """Say one line to whoever started us, and let go of what it is said through."""
    with contextlib.suppress(BrokenPipeError):
        print(" ".join(line.split()), flush=True)  # noqa: T201
    nobody = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nobody, stream)


@contextmanager
def _dockerd(folder: Path, link: str) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon that has all it writes in `folder`."""
    command = ["dockerd", "--host", f"unix://{folder / SOCKET}"]
    command += ["--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")]
    command += ["--pidfile", str(folder / "dockerd.pid"), "--config-file", str(folder / "none")]
    command += ["--bridge", link, "--iptables=false", "--ip6tables=false"]
    command += ["--log-level", "warn", "--log-opt", "max-size=5m", "--shutdown-timeout", "1"]
    (folder / "none").write_text("{}")  # The machine's own configuration is not for us.
    with (folder / "dockerd.log").open("wb") as log:
        daemon = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield daemon
    finally:
        _kill_what_runs(f"unix://{folder / SOCKET}")
        daemon.terminate()
        try:
            daemon.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()


def _kill_what_runs(url: str) -> None:
    """End containers at once: the daemon would wait ten seconds for each that ignores SIGTERM."""
    with contextlib.suppress(docker.errors.DockerException):
        client = docker.DockerClient(base_url=url, version="auto")
        for container in client.containers.list():
            container.kill()
        client.close()


def _remove(folder: Path) -> None:
    """Take a folder away, with what a daemon may have left mounted in it."""
    libc = ctypes.CDLL(None)
    table = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    places = [line.split()[1].encode().decode("unicode_escape") for line in table]
    for place in sorted(place for place in places if Path(place).is_relative_to(folder)):
        libc.umount2(os.fsencode(place), _DETACH)
    shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Start, keep or stop a daemon: see the module."""
    match sys.argv[1:]:
        case ["start", folder]:
            try:
                print(f"export DOCKER_HOST={start(Path(folder).resolve())}")  # noqa: T201
            except Unavailable as why:
                sys.exit(f"dockerd: {why}")
        case ["stop", folder]:
            stop(Path(folder).resolve())
        case ["keep", folder, owner]:
            keep(Path(folder), int(owner))
        case _:
            sys.exit("usage: dockerd start|stop FOLDER")


if __name__ == "__main__":
    main()
