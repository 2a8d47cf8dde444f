"""What every test may use: Hypothesis profiles, the shared folder, golden files, no quiet skip.

And what a session started is gone before the session is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
GOLDEN = ROOT / "tests" / "golden"

# No deadline: two busy cores make any single example slow without anything being wrong.
settings.register_profile("dev", max_examples=30, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True, print_blob=True)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
)


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def forbid_skip(report: Report) -> Report:
    """The report, as a failure if it is a skip that BACKSTOP_NO_SKIPS forbids; an xfail is none."""
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("BACKSTOP_NO_SKIPS"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} may not be skipped here: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return forbid_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return forbid_skip((yield))


def daemon_folder(session: int) -> Path:
    """Where the private Docker daemon of the test session with this process id has its data."""
    return Path(tempfile.gettempdir()) / f"backstop-docker-{session}"


def pytest_unconfigure() -> None:
    if (folder := daemon_folder(os.getpid())).exists():
        from tests.docker.daemon import stop

        stop(folder)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of cases and data that lies beside the project; never part of it."""
    if not SHARED.is_dir():
        pytest.skip(f"no shared folder beside the project ({SHARED.name}/ is missing)")
    return SHARED


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compares a text with tests/golden/NAME; `make golden` rewrites the file instead."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("BACKSTOP_GOLDEN") == "rewrite":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"no golden file {name}: `make golden` writes it"
        assert text == path.read_text(encoding="utf-8")

    return compare
