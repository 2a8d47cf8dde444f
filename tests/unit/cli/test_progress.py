"""Progress is for a person who watches."""

from __future__ import annotations

import contextlib
import os
import sys
from contextlib import redirect_stderr

from backstop.cli.progress import progress_bar


def test_a_pipe_sees_no_progress() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as pipe, redirect_stderr(pipe), progress_bar() as progress:
        assert progress is None
    with os.fdopen(reading, "rb") as told:
        assert told.read() == b""


def test_a_person_sees_how_many_runs_are_done() -> None:
    person, ours = os.openpty()
    with os.fdopen(ours, "w") as terminal, redirect_stderr(terminal), progress_bar() as progress:
        assert sys.stderr.isatty()
        assert progress is not None
        progress(3, 7)
    told = b""
    # Linux ends a pseudo-terminal that nobody writes to with an error, not with no bytes.
    with contextlib.suppress(OSError):
        while chunk := os.read(person, 65536):
            told += chunk
    os.close(person)
    assert b"replaying runs" in told
    assert b"3/7" in told
