"""The emulators come up, and end with whoever started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from backstop.adapters.emulators import bigquery_emulator, emulators_missing, pubsub_emulator
from backstop.errors import BackstopError
from tests.architecture.source import ROOT
from tests.emulators import bigquery_missing

STARTER = """
import sys, time
from backstop.adapters.emulators import firestore_emulator
with firestore_emulator() as host:
    print(host, flush=True)
    time.sleep(60)
"""

with_tools = pytest.mark.skipif(emulators_missing() is not None, reason=str(emulators_missing()))


def answers(host: str, path: str = "", words: bytes = b"Ok") -> bool:
    try:
        with urllib.request.urlopen(f"http://{host}/{path}", timeout=30) as said:
            return words in said.read()
    except OSError:
        return False


def gone_soon(host: str) -> bool:
    for _ in range(100):
        if not answers(host):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.emulator
@with_tools
def test_an_emulator_answers_inside_the_block_and_is_gone_after_it() -> None:
    with pubsub_emulator() as host:
        assert answers(host)
    assert gone_soon(host)


@pytest.mark.emulator
@with_tools
def test_an_emulator_ends_with_a_starter_that_is_killed() -> None:
    starter = subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    with starter, starter.stdout as said:
        host = said.readline().strip()
        assert answers(host)
        os.kill(starter.pid, signal.SIGKILL)
    assert gone_soon(host)


def test_a_machine_without_the_tools_is_told_what_is_missing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTER],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "BackstopError: gcloud is not installed" in done.stderr


@pytest.mark.bigquery
@pytest.mark.skipif(bigquery_missing() is not None, reason=str(bigquery_missing()))
def test_the_emulator_of_bigquery_answers_inside_the_block_and_is_gone_after_it() -> None:
    with bigquery_emulator(ROOT / ".venv-bigquery") as host:
        assert answers(host, "bigquery/v2/projects", b'"id":"local"')
    assert gone_soon(host)


def test_an_environment_without_the_emulator_of_bigquery_is_said_to_be_none(tmp_path: Path) -> None:
    with (
        pytest.raises(BackstopError, match=r"local-bigquery.* did not come up: .*not found"),
        bigquery_emulator(tmp_path),
    ):
        pass


def run_setup(folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """What `make test` does for the emulator of BigQuery, in a checkout of its own."""
    (folder / ".ci").mkdir(exist_ok=True)
    for name in ("bigquery", "bigquery.txt"):
        (folder / ".ci" / name).write_bytes((ROOT / ".ci" / name).read_bytes())
    return subprocess.run(
        ["/bin/sh", ".ci/bigquery"],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_shim_that_has_no_python_is_none_and_said_so(tmp_path: Path) -> None:
    """Without a 3.13 nothing is made: the tests skip by name, which .ci/run does not allow."""
    shim = tmp_path / "bin" / "python3.13"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\necho 'command not found' >&2\nexit 127\n", encoding="utf-8")
    shim.chmod(0o755)
    done = run_setup(
        tmp_path, PATH=f"{shim.parent}:/usr/bin:/bin", PYENV_ROOT=str(tmp_path / "none")
    )
    assert done.returncode == 0
    assert "no Python 3.13 on this machine" in done.stderr
    assert not (tmp_path / ".venv-bigquery").exists()
