"""Runs the command line as a person would: text in, text and exit code out."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from backstop.cli import run

ROOT = Path(__file__).parents[2]
EXCERPT = Path(__file__).parent / "excerpt.json"
CONFIG = Path(__file__).parent / "desk.yaml"
IMPORT = ("ledger", "import", "--config", CONFIG, "--from", "chat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str


def backstop(*arguments: str | Path) -> Ran:
    """Run ``backstop`` in the project's folder; never a traceback, whatever the arguments are."""
    out, err = io.BytesIO(), io.BytesIO()
    with (
        contextlib.redirect_stdout(io.TextIOWrapper(out, encoding="utf-8")) as told,
        contextlib.redirect_stderr(io.TextIOWrapper(err, encoding="utf-8")) as complained,
        contextlib.chdir(ROOT),
    ):
        code = run([str(argument) for argument in arguments])
        told.flush()
        complained.flush()
        return _ran(code, out.getvalue(), err.getvalue())


def in_a_process(*arguments: str | Path, **environment: str) -> Ran:
    """The same in a process of its own, with these variables in its environment."""
    ran = subprocess.run(
        [sys.executable, "-m", "backstop", *map(str, arguments)],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=120,
    )
    return _ran(ran.returncode, ran.stdout, ran.stderr)


def _ran(code: int, out: bytes, err: bytes) -> Ran:
    assert b"Traceback" not in out + err
    return Ran(code=code, out=out.decode(), err=err.decode())


def excerpt_ledgers(folder: Path) -> tuple[Path, Path]:
    """The excerpt's two trials as ledgers."""
    for trial in (0, 1):
        ran = backstop(
            *IMPORT,
            *(EXCERPT, "--where", f"trial={trial}", "--run-field", "task"),
            *("--out", folder / f"{trial}.jsonl"),
        )
        assert ran.code == 0, ran.err
    return folder / "0.jsonl", folder / "1.jsonl"


def refused(slug: str, *arguments: str | Path) -> str:
    """The one line of a command that must be refused with exit code 2 and this slug."""
    ran = backstop(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error[{slug}]: "), ran.err
    assert ran.err.count("\n") == 1
    return ran.err
