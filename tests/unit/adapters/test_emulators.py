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

from backstop.adapters.emulators import emulators_missing, pubsub_emulator

STARTER = """
import sys, time
from backstop.adapters.emulators import firestore_emulator
with firestore_emulator() as host:
    print(host, flush=True)
    time.sleep(60)
"""

with_tools = pytest.mark.skipif(emulators_missing() is not None, reason=str(emulators_missing()))


def answers(host: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{host}/", timeout=1) as said:
            return bool(said.read().strip() == b"Ok")
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
