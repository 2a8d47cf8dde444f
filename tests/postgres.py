"""A PostgreSQL of our own for tests: in a folder of its own, behind a socket, gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534
"""Whose server it is where root runs the tests: PostgreSQL refuses to be root's."""


def missing() -> str | None:
    """Why there can be no server; None if there can."""
    return None if _program("initdb") else "PostgreSQL's server is not installed (apt: postgresql)"


@contextmanager
def server() -> Iterator[str]:
    """An empty database; its URL, without a driver."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        with _running(folder) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(folder: Path) -> Iterator[str]:
    owner = _NOBODY if os.geteuid() == 0 else None
    if owner is not None:
        os.chown(folder, owner, owner)
    data = folder / "data"
    made = (_program("initdb"), "-D", data, "-U", "ann", "-A", "trust", "-E", "UTF8", "--no-sync")
    subprocess.run(
        [*map(str, made), "--no-locale"],
        check=True,
        user=owner,
        group=owner,
        cwd=folder,
        capture_output=True,
    )
    settings = ("-F", "-k", folder, "-c", "listen_addresses=", "-c", "timezone=Asia/Tokyo")
    running = subprocess.Popen(
        [str(one) for one in (_program("postgres"), "-D", data, *settings)],
        user=owner,
        group=owner,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _until_it_answers(running, folder)
        yield f"postgresql://ann@/postgres?host={folder}"
    finally:
        running.send_signal(signal.SIGQUIT)  # nobody is waited for, and nothing is kept
        running.wait(timeout=30)


def _until_it_answers(running: subprocess.Popen[bytes], folder: Path) -> None:
    import psycopg

    while running.poll() is None:
        try:
            psycopg.connect(host=str(folder), user="ann", dbname="postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("PostgreSQL did not start")


def _program(name: str) -> str | None:
    """Debian keeps servers beside the path, a folder each version."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(found[-1]) if found else None)
