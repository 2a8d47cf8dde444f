"""The commands of docs/mesh.md, run as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from backstop.config.anchors import load
from tests.e2e.command import ROOT
from tests.e2e.mesh.rerunning import opened

PAGE = (ROOT / "docs" / "mesh.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ backstop (mesh .*?) *# exits ([0-9])$", PAGE, re.MULTILINE)
CONFIG = """\
version: 1
agents:
  clerk:
    store: sqlite:///desk.db
"""
RECOVERY = """\
from tests.e2e.mesh import rerunning


def fleet():
    made = rerunning.fleet()
    made.says = {"statistician": "as ever"}
    return made
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fleet = opened(tmp_path)
    fleet.says = {"statistician": "as ever"}
    fleet.begins()
    fleet.anchors(tmp_path)
    (tmp_path / "backstop.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "recovery.py").write_text(RECOVERY, encoding="utf-8")
    return tmp_path


def test_each_command_ends_as_the_page_says(folder: Path) -> None:
    assert len(COMMANDS) == 8
    for command, code in COMMANDS:
        ran = subprocess.run(
            [sys.executable, "-m", "backstop", *shlex.split(command)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "FLEET": str(folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert ran.returncode == int(code), (command, ran.stdout, ran.stderr)


def test_the_anchors_on_the_page_can_be_read(tmp_path: Path) -> None:
    (text,) = re.findall(
        r"^```yaml\n(version: 1\npayloads.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
    file = tmp_path / "backstop-mesh.yaml"
    file.write_text(text, encoding="utf-8")
    anchored = load(file)
    assert anchored.payloads == tmp_path / "payloads"
    assert anchored.anchors.producers == {"desk-1"}
