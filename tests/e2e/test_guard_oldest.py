"""The run-time cases once more, on the oldest framework that is supported.

They run in `.venv-oldest`, whose few packages are the framework and what it needs.
"""

from __future__ import annotations

import os
import subprocess

from tests.e2e.command import ROOT

OLDEST = ROOT / ".venv-oldest/bin/python"


def test_every_run_time_case_holds_on_the_oldest_framework_too() -> None:
    cases = sorted(str(file) for file in (ROOT / "tests/e2e").glob("test_guard_cases_*.py"))
    launcher = [str(OLDEST), str(ROOT / "tests/e2e/appended.py")]
    version = subprocess.run(
        [*launcher, "tests.e2e.framework"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert version.stdout == "2.11.0"
    ran = subprocess.run(
        [
            *launcher,
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-W",
            "ignore",
            "--no-header",
            *cases,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=600,
        env={**os.environ, "COVERAGE_PROCESS_START": ""},
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
