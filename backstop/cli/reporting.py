"""Puts a verdict where it was asked for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from backstop.adapters.files import write_atomic
from backstop.cli.options import Format
from backstop.core.verdict import Verdict


def report(
    verdict: Verdict,
    *,
    timing_ms: Mapping[str, float],
    form: Format,
    output: Path | None,
) -> int:
    """Print the verdict, write it to `output` too, and give its exit code."""
    if form is Format.JSON:
        from backstop.reports.document import render_json

        text = told = render_json(verdict, timing_ms=timing_ms)
    else:
        from backstop.reports.terminal import render

        text = render(verdict)
        told = render(verdict, colour=True) if sys.stdout.isatty() else text
    if output is not None:
        write_atomic(output, text.encode())
    sys.stdout.write(told)
    return verdict.exit_code
