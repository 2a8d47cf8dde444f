"""Emulators of Firestore, Pub/Sub and BigQuery as child processes that end for certain.

One of Google's is three processes deep (gcloud, a shell, Java) and outlives whoever started it by
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
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from backstop.errors import BackstopError

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

_FOR_GCLOUD: Final[Mapping[str, str]] = MappingProxyType(
    {
        # A configuration of its own: two that start at once would write into one.
        "CLOUDSDK_CONFIG": "{home}",
        "CLOUDSDK_CORE_CHECK_GCE_METADATA": "false",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
    }
)
_OF_GCLOUD: Final = ("--host-port={host}", "--quiet")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Emulator:
    """How one is started; ``{host}``, ``{port}`` and ``{home}`` are filled in at each try.

    `up` is what its answer to a look at `path` holds once it is ready, `gave_up` of which
    its log holds something if it never will be.
    """

    command: tuple[str, ...]
    path: str
    up: bytes
    gave_up: tuple[str, ...]
    environ: Mapping[str, str]
    warm: Mapping[str, str] = field(default_factory=dict)


def _of_gcloud(*command: str, warm: Mapping[str, str] = MappingProxyType({})) -> _Emulator:
    return _Emulator(
        command=("gcloud", *command, *_OF_GCLOUD),
        path="/",
        up=b"Ok",
        gave_up=("ERROR: (gcloud",),
        environ=_FOR_GCLOUD,
        warm=warm,
    )


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
    return _of_google(_of_gcloud("emulators", "firestore", "start", warm=_FIRST_CALLS))


def pubsub_emulator() -> AbstractContextManager[str]:
    """Run a Pub/Sub emulator; gives the value for ``PUBSUB_EMULATOR_HOST``.

    Raises `BackstopError` (``emulator``).
    """
    return _of_google(_of_gcloud("beta", "emulators", "pubsub", "start"))


def bigquery_emulator(environment: Path) -> AbstractContextManager[str]:
    """Run the emulator of BigQuery that is installed in `environment`; gives ``address:port``.

    It keeps one project, ``local``, until it ends. Raises `BackstopError` (``emulator``).
    """
    program = environment / "bin" / "local-bigquery"
    return _running(
        _Emulator(
            command=(
                *(str(program), "serve", "--host=127.0.0.1", "--port={port}", "--grpc-port=0"),
                "--data-dir={home}/data",
            ),
            path="/bigquery/v2/projects",
            up=b"projectList",
            gave_up=("error while attempting", "Traceback", "not found"),
            # DuckDB looks for its extensions there.
            environ={"HOME": str(environment)},
        )
    )


@contextmanager
def _of_google(emulator: _Emulator) -> Iterator[str]:
    if (why := emulators_missing()) is not None:
        raise BackstopError(why, slug="emulator")
    with _running(emulator) as host:
        yield host


@contextmanager
def _running(emulator: _Emulator) -> Iterator[str]:
    said = ""
    for _ in range(_TRIES):
        host = f"127.0.0.1:{_free_port()}"
        home = Path(tempfile.mkdtemp(prefix="backstop-emulator-"))
        watcher = _started(emulator, host, home)
        try:
            if _answers(emulator, host, watcher, home):
                _warm_up(host, emulator.warm)
                yield host
                return
            said = _last_words(home)
        finally:
            _end(watcher, home)
    raise BackstopError(f"{' '.join(emulator.command)} did not come up: {said}", slug="emulator")


def _started(emulator: _Emulator, host: str, home: Path) -> subprocess.Popen[bytes]:
    def filled(text: str) -> str:
        text = text.replace("{host}", host).replace("{port}", host.rpartition(":")[2])
        return text.replace("{home}", str(home))

    return subprocess.Popen(  # noqa: S603 - our own words only
        ["/bin/sh", "-c", _WATCH, str(home), *map(filled, emulator.command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, **{name: filled(text) for name, text in emulator.environ.items()}},
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _answers(emulator: _Emulator, host: str, watcher: subprocess.Popen[bytes], home: Path) -> bool:
    until = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < until and watcher.poll() is None:
        connection = http.client.HTTPConnection(host, timeout=_PAUSE_S * 10)
        try:
            connection.request("GET", emulator.path)
            if emulator.up in connection.getresponse().read():
                return True
        except (OSError, http.client.HTTPException):
            if any(words in _last_words(home) for words in emulator.gave_up):
                return False  # the watcher waits for us all the same
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
