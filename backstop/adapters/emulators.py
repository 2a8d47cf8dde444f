"""Google's emulators of Firestore and Pub/Sub as child processes that end for certain.

An emulator is three processes deep (gcloud, a shell, Java) and outlives whoever started it by
nature. So a watcher stands over its process group: it waits at the end of a pipe that only the
starting process holds open, and ends the group when that process closes it, or is gone in
whatever way.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from backstop.errors import BackstopError

_FIRESTORE: Final = ("gcloud", "emulators", "firestore", "start")
_PUBSUB: Final = ("gcloud", "beta", "emulators", "pubsub", "start")
_NEEDED: Final = ("gcloud", "java", "sh")
_TRIES: Final = 3
"""A port that was free may be taken by the time that the emulator is up."""

_STARTS_WITHIN_S: Final = 90.0
_ENDS_WITHIN_S: Final = 10.0
_PAUSE_S: Final = 0.1

_AS_OWNER: Final = {"Authorization": "Bearer owner", "Content-Type": "application/json"}
_WARM: Final = "projects/warm-up/databases/(default)/documents"
_FIRST_CALLS: Final[Mapping[str, str]] = {
    f"/v1/{_WARM}:commit": f'{{"writes": [{{"update": {{"name": "{_WARM}/first/write"}}}}]}}',
    f"/v1/{_WARM}:runQuery": '{"structuredQuery": {"from": [{"collectionId": "first"}]}}',
}
"""An emulator takes seconds for its first write and query: longer than anybody waits for one."""

# gcloud makes itself a process group of its own, once it is up: both are ended.
_WATCH: Final = """
"$@" >"$0/log" 2>&1 </dev/null &
cat >/dev/null
rm -rf "$0"
kill -KILL -$! 2>/dev/null
kill -KILL 0
"""


def emulators_missing() -> str | None:
    """Why no emulator can be started on this machine; None if one can."""
    for program in _NEEDED:
        if shutil.which(program) is None:
            return f"{program} is not installed, and the emulators of Firestore and Pub/Sub need it"
    return None


def firestore_emulator() -> AbstractContextManager[str]:
    """Run a Firestore emulator; gives the value for ``FIRESTORE_EMULATOR_HOST``.

    Raises `BackstopError` (``emulator``).
    """
    return _running(_FIRESTORE, warm=_FIRST_CALLS)


def pubsub_emulator() -> AbstractContextManager[str]:
    """Run a Pub/Sub emulator; gives the value for ``PUBSUB_EMULATOR_HOST``.

    Raises `BackstopError` (``emulator``).
    """
    return _running(_PUBSUB)


@contextmanager
def _running(
    command: tuple[str, ...], warm: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    if (why := emulators_missing()) is not None:
        raise BackstopError(why, slug="emulator")
    said = ""
    for _ in range(_TRIES):
        host = f"127.0.0.1:{_free_port()}"
        home = Path(tempfile.mkdtemp(prefix="backstop-emulator-"))
        watcher = _started(command, host, home)
        try:
            if _answers(host, watcher, home):
                _warm_up(host, warm)
                yield host
                return
            said = _last_words(home)
        finally:
            _end(watcher, home)
    raise BackstopError(f"{' '.join(command)} did not come up: {said}", slug="emulator")


def _started(command: tuple[str, ...], host: str, home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own words only
        ["/bin/sh", "-c", _WATCH, str(home), *command, f"--host-port={host}", "--quiet"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={
            **os.environ,
            # A configuration of its own: two that start at once would write into one.
            "CLOUDSDK_CONFIG": str(home),
            "CLOUDSDK_CORE_CHECK_GCE_METADATA": "false",
            "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
            "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
        },
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _answers(host: str, watcher: subprocess.Popen[bytes], home: Path) -> bool:
    until = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < until and watcher.poll() is None:
        connection = http.client.HTTPConnection(host, timeout=_PAUSE_S * 10)
        try:
            connection.request("GET", "/")
            if connection.getresponse().read().strip() == b"Ok":
                return True
        except (OSError, http.client.HTTPException):
            if _gave_up(home):
                return False
            time.sleep(_PAUSE_S)
        finally:
            connection.close()
    return False


def _warm_up(host: str, calls: Mapping[str, str]) -> None:
    connection = http.client.HTTPConnection(host, timeout=_STARTS_WITHIN_S)
    try:
        for path, body in calls.items():
            connection.request("POST", path, body=body, headers=_AS_OWNER)
            connection.getresponse().read()
    finally:
        connection.close()


def _gave_up(home: Path) -> bool:
    """It says so itself when the emulator ended early; the watcher waits for us all the same."""
    return "ERROR: (gcloud" in _last_words(home)


def _last_words(home: Path) -> str:
    with contextlib.suppress(OSError):
        return (home / "log").read_text(encoding="utf-8", errors="replace").strip()[-300:]
    return "it said nothing"


def _end(watcher: subprocess.Popen[bytes], home: Path) -> None:
    assert watcher.stdin is not None  # noqa: S101 - it is a pipe
    watcher.stdin.close()
    try:
        watcher.wait(timeout=_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(watcher.pid, signal.SIGKILL)
        watcher.wait()
    shutil.rmtree(home, ignore_errors=True)
