"""What the guard tells tracers, and that it stays where somebody traces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from opentelemetry import trace

TRACED = Path(__file__).with_name("traced.py")


def test_rows_name_their_trace_and_spans_name_their_rows() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TRACED)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_nobody_traces_in_the_process_of_the_tests() -> None:
    """A tracer is for good: rows of every later test would name its spans."""
    assert type(trace.get_tracer_provider()).__name__ == "ProxyTracerProvider"
