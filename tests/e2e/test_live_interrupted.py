"""Ctrl-C while a model is asked: what was paid for is on the cassette."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backstop.core.cassette import read
from tests.e2e.command import ROOT
from tests.e2e.living import as_recorded, change
from tests.generating import KEY, Raw, gemini

pytestmark = pytest.mark.filterwarnings("ignore")


def test_what_was_answered_before_an_interruption_is_kept(tmp_path: Path) -> None:
    third, over = threading.Event(), threading.Event()
    asked: list[dict[str, Any]] = []

    def script(body: dict[str, Any]) -> Mapping[str, Any] | Raw:
        asked.append(body)
        if len(asked) < 3:
            return as_recorded(body)
        third.set()
        over.wait(30)
        return Raw(reset=True)

    with gemini(script) as served:
        case = change(tmp_path, served.url)
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "backstop", "gate", "--cassette", str(case.cassette)),
                *("--config", str(case.head / "backstop.yaml")),
            ],
            cwd=ROOT,
            env={**os.environ, "GOOGLE_API_KEY": KEY},
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        assert third.wait(60)
        process.send_signal(signal.SIGINT)
        over.set()
        _, complained = process.communicate(timeout=60)
    assert b"error[interrupted]" in complained
    assert b"Traceback" not in complained
    kept = read(case.cassette.read_bytes(), name="c").answers
    assert sum(not answer.why for answer in kept) == 2
    assert len(asked) == 3
