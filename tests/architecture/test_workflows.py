"""What GitHub and Docker read is held to their rules, by linters that can be seen to object."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

READ_BY_OTHERS = (
    ".github",
    "action.yml",
    "Dockerfile",
    "backstop.yaml",
    "docs/config.schema.json",
    "docs/verdict.schema.json",
)


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / ".ci" / "lint-workflows", tree], capture_output=True, check=False, text=True
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of all that the linters look at."""
    examples = [str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*.yml")]
    for name in [*READ_BY_OTHERS, *examples]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_linter_is_content_with_what_we_publish() -> None:
    done = lint(ROOT)
    assert (done.returncode, done.stderr) == (0, "")


FAULTS = {
    # A workflow that is no workflow is not looked into any further: its fault stands alone.
    ".github/workflows/ci.yml": ("timeout-minutes: 60", "timeout-hours: 1"),
    ".github/workflows/release.yml": (
        "run: sudo",
        "run: echo ${{ github.event.head_commit.message }}",
    ),
    "examples/workflow.yml": ("pull_request,", "pull_request_target,"),
    "action.yml": ("using: docker", "using: podman"),
    "Dockerfile": ("FROM ${BASE}", "FROM python:latest"),
    "backstop.yaml": ("version: 1", "version: one"),
    "docs/verdict.schema.json": ('"type": "object"', '"type": "thing"'),
}


def test_each_linter_objects_to_a_planted_fault(tree: Path) -> None:
    for file, (was, planted) in FAULTS.items():
        text = (tree / file).read_text(encoding="utf-8")
        assert was in text
        (tree / file).write_text(text.replace(was, planted, 1), encoding="utf-8")
    done = lint(tree)
    assert done.returncode == 1
    objections = re.findall(r"^lint: not content: (\S+)", done.stderr, re.MULTILINE)
    script = (ROOT / ".ci" / "lint-workflows").read_text(encoding="utf-8")
    assert objections == re.findall(r"^held (\S+)", script, re.MULTILINE)
