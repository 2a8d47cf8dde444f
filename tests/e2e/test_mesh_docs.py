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
from backstop.errors import UsageError
from examples.evidence_mesh.keeping import keep
from tests.e2e.command import ROOT

PAGE = (ROOT / "docs" / "mesh.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ backstop (mesh .*?) *# exits ([0-9])$", PAGE, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kept = tmp_path / "a folder"
    ran = subprocess.run(
        [sys.executable, "-m", "examples.evidence_mesh.show", "--keep", str(kept)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "publish_action is BLOCKED" in ran.stdout
    return kept


def test_each_command_ends_as_the_page_says(folder: Path) -> None:
    assert len(COMMANDS) == 8
    for command, code in COMMANDS:
        ran = subprocess.run(
            [sys.executable, "-m", "backstop", *shlex.split(command)],
            cwd=folder,
            env={**os.environ, "COLUMNS": "80"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert ran.returncode == int(code), (command, ran.stdout, ran.stderr)
        assert "Traceback" not in ran.stderr


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="has something in it"):
        keep(tmp_path)
    with pytest.raises(UsageError, match="has something in it"):
        keep(mine)
    assert [*tmp_path.iterdir()] == [mine]


def test_the_anchors_on_the_page_can_be_read(tmp_path: Path) -> None:
    (text,) = re.findall(
        r"^```yaml\n(version: 1\npayloads.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
    file = tmp_path / "backstop-mesh.yaml"
    file.write_text(text, encoding="utf-8")
    anchored = load(file)
    assert anchored.payloads == tmp_path / "payloads"
    assert anchored.anchors.producers == {"desk-1"}
