"""The action as a process: what it leaves to others, and its exit code whatever happens."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from backstop.action import forget

ENTRYPOINT = Path(__file__).parents[3] / "entrypoint.py"


def start(environment: dict[str, str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        (sys.executable, "-Esu", str(ENTRYPOINT)),
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_nothing_of_the_runner_is_left_to_what_is_started() -> None:
    """Tokens of the job least of all; what a store or a daemon needs stays."""
    environment = {
        "ACTIONS_RUNTIME_TOKEN": "x",
        "GITHUB_TOKEN": "x",
        "INPUT_GITHUB-TOKEN": "x",
        "RUNNER_TEMP": "/tmp/x",  # noqa: S108  # a name, nothing is written
        "GOOGLE_APPLICATION_CREDENTIALS": "creds.json",
        "PATH": "/bin",
    }
    forget(environment)
    assert sorted(environment) == ["GOOGLE_APPLICATION_CREDENTIALS", "PATH"]


def test_outside_of_a_runner_it_ends_with_2_and_one_line(tmp_path: Path) -> None:
    process = start({"PATH": os.environ["PATH"]}, tmp_path)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "error[event]: GITHUB_EVENT_NAME is not set" in told
    assert "Traceback" not in told


def test_a_cancelled_run_reports_and_ends_with_2(tmp_path: Path) -> None:
    """SIGTERM while GitHub is waited for: log, summary and outputs say that nothing was decided."""
    event = tmp_path / "event.json"
    said = {"ref": "refs/heads/main", "before": "a" * 40, "after": "b" * 40}
    event.write_text(json.dumps(said))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = {
            "PATH": os.environ["PATH"],
            "GITHUB_API_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_REPOSITORY": "octo/repo",
            "GITHUB_RUN_ID": "1",
            "GITHUB_SHA": "b" * 40,
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        }
        process = start(environment, tmp_path)
        asked, _ = silent.accept()
        process.send_signal(signal.SIGTERM)
        told, _ = process.communicate(timeout=60)
        asked.close()
    assert process.returncode == 2
    assert "error[interrupted]" in told
    assert "cancelled" in (tmp_path / "summary").read_text()
    assert "ERROR" in (tmp_path / "output").read_text()
