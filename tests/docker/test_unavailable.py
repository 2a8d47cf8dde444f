"""A machine that can have no Docker daemon says why, in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ANSWERS = {
    "apt-get": "echo 'E: no index can be reached' >&2; exit 100",
    "containerd": "exit 0",
    "dockerd": "echo 'failed to start daemon: no cgroups'; exit 1",
    "iptables": "exit 0",
    "runc": "exit 0",
}
"""Programs that stand for those of a machine, and what they do."""

pytestmark = pytest.mark.docker


def start(folder: Path, *programs: str, **others: str) -> subprocess.CompletedProcess[str]:
    """Ask for a daemon on a machine that has only these programs."""
    (folder / "bin").mkdir()
    for name in programs:
        file = folder / "bin" / name
        file.write_text(f"#!/bin/sh\n{others.get(name, ANSWERS[name])}\n", encoding="ascii")
        file.chmod(0o755)
    return subprocess.run(
        [sys.executable, "-m", "tests.docker.daemon", "start", str(folder / "daemon")],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={"PATH": str(folder / "bin")},
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("programs", "others", "said"),
    [
        ([], {}, "dockerd is not installed, and there is no apt-get to install it"),
        (["apt-get"], {}, "update failed: E: no index can be reached"),
        (["apt-get"], {"apt-get": "exit 0"}, "dockerd is not there, although apt-get installed it"),
        (
            ["containerd", "dockerd", "iptables", "runc"],
            {},
            "dockerd does not start: failed to start daemon: no cgroups",
        ),
        (
            ["containerd", "dockerd", "iptables", "runc"],
            {"iptables": "echo 'no permission' >&2; exit 4"},
            "dockerd does not start: iptables refuses -I POSTROUTING",
        ),
    ],
)
def test_what_is_missing_or_fails_is_named(
    tmp_path: Path, programs: list[str], others: dict[str, str], said: str
) -> None:
    done = start(tmp_path, *programs, **others)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("dockerd: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "daemon").exists()


def test_who_is_not_root_is_told_so() -> None:
    code = "import os; from tests.docker.daemon import main; os.seteuid(65534); main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "start", "/tmp/none"],  # noqa: S108 - never made
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == "dockerd: only root can start a private Docker daemon\n"
