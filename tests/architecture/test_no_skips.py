"""Under BACKSTOP_NO_SKIPS nothing passes by not running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

PLANTED = """
import pytest

def test_skips() -> None:
    pytest.skip("planted")

@pytest.mark.skipif(True, reason="planted")
def test_never_starts() -> None: ...

@pytest.mark.xfail(reason="a known fault")
def test_is_known_to_fail() -> None:
    raise AssertionError
"""


def closing_line(folder: Path, **environment: str) -> str:
    """What pytest says last about a folder that uses our conftest."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith("BACKSTOP_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "."],
        cwd=folder,
        env={**environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()[-1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_bytes((ROOT / "tests" / "conftest.py").read_bytes())
    (tmp_path / "test_planted.py").write_text(PLANTED, encoding="utf-8")
    return tmp_path


def test_a_skip_is_a_failure_where_none_is_allowed(folder: Path) -> None:
    assert closing_line(folder, BACKSTOP_NO_SKIPS="1").startswith("1 failed, 1 xfailed, 1 error")


def test_a_skipped_module_is_an_error_where_none_is_allowed(folder: Path) -> None:
    text = "import pytest\npytest.skip('planted', allow_module_level=True)\n"
    (folder / "test_planted.py").write_text(text, encoding="utf-8")
    assert closing_line(folder, BACKSTOP_NO_SKIPS="1").startswith("1 error")


def test_elsewhere_a_skip_stays_a_skip(folder: Path) -> None:
    assert closing_line(folder).startswith("2 skipped, 1 xfailed")
