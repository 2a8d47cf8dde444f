"""The set-up of a bare machine: what is missing is named in one line."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.command import ROOT

STUB = """#!/bin/sh
case "$*" in
    --version) echo "Python 3.9.1" ;;
    *version_info*) exit {old} ;;
    *ensurepip,*) exit {no_venv} ;;
    "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip --version") exit {no_pip} ;;
    "-m ensurepip") exit {no_pip} ;;
    "-m pip install "*)
        printf '#!/bin/sh\\necho "$*" >> calls\\n' > .venv/bin/uv && chmod +x .venv/bin/uv
        exit {no_index} ;;
    *) case "$0" in .venv/*) exit 0 ;; *) exit 1 ;; esac ;;
esac
"""
"""An interpreter that lacks what it is told to lack; it makes environments of its own kind."""


def set_up(folder: Path, interpreter: str, **lacks: int) -> subprocess.CompletedProcess[str]:
    """Run the set-up in a folder, with no uv to be found, on a stub of an interpreter."""
    stub = folder / "python-stub"
    wholly = dict.fromkeys(("old", "no_venv", "no_pip", "no_index"), 0)
    stub.write_text(STUB.format(**{**wholly, **lacks}), encoding="utf-8")
    stub.chmod(0o755)
    tools = folder / "bin"
    tools.mkdir()
    for name in ("chmod", "cp", "mkdir", "rm"):
        (tools / name).symlink_to(shutil.which(name) or name)
    return subprocess.run(
        ["/bin/sh", str(ROOT / ".ci" / "setup"), interpreter],
        capture_output=True,
        check=False,
        cwd=folder,
        env={"PATH": str(tools)},
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("lacks", "said"),
    [
        ({"old": 1}, "Python 3.9.1 is too old: Backstop needs 3.11 or newer"),
        ({"no_venv": 1}, "install the package python3-venv"),
        ({"no_pip": 1}, "install the package python3-venv"),
        ({"no_index": 1}, "cannot fetch uv: is the package index reachable?"),
    ],
)
def test_what_a_machine_lacks_is_named_in_one_line(
    lacks: dict[str, int], said: str, tmp_path: Path
) -> None:
    done = set_up(tmp_path, "./python-stub", **lacks)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("setup: ")
    assert said in done.stderr


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = set_up(tmp_path, "python-of-nobody")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("setup: python-of-nobody not found: install Python 3.11")


def test_where_there_is_no_uv_it_is_fetched_into_the_environment(tmp_path: Path) -> None:
    done = set_up(tmp_path, "./python-stub")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "calls").read_text() == "sync --frozen --inexact --quiet --offline\n"
