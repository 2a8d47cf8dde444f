"""The oracle of dependency capture once more, on the oldest framework that is supported."""

from __future__ import annotations

import subprocess

from tests.e2e.command import ROOT

OLDEST = ROOT / ".venv-oldest/bin/python"


def test_the_oracle_finds_no_miss_on_the_oldest_framework_either() -> None:
    launcher = [str(OLDEST), str(ROOT / "tests/e2e/appended.py")]
    version = subprocess.run(
        [*launcher, "tests.e2e.framework"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert version.stdout == "2.11.0"
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "--no-header"]
    chosen = ["-k", "lies_where or second_message"]
    ran = subprocess.run(
        [*launcher, "pytest", *options, *chosen, "tests/e2e/test_capture_oracle.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert "46 passed" in ran.stdout
