"""The mesh's reference scenario and cases once more, on the oldest framework that is supported."""

from __future__ import annotations

import subprocess

from tests.e2e.command import ROOT

FILES = ["tests/e2e/test_mesh_reference.py", "tests/e2e/test_mesh_cases.py"]
OLDEST = ROOT / ".venv-oldest/bin/python"


def test_the_reference_scenario_and_the_cases_hold_on_the_oldest_framework_too() -> None:
    launcher = [str(OLDEST), str(ROOT / "tests/e2e/appended.py")]
    version = subprocess.run(
        [*launcher, "tests.e2e.framework"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert version.stdout == "2.11.0"
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "--no-header"]
    ran = subprocess.run(
        [*launcher, "pytest", *options, *FILES],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert "41 passed" in ran.stdout
