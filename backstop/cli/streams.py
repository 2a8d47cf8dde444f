"""Standard output whose reader may go away."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO


def print_lines(lines: Iterable[str]) -> None:
    """Print lines for as long as somebody reads them.

    For listings only: whoever ran ``head`` has seen enough, which is no error. A verdict that
    nobody has read is one, so commands that decide do not print like this.
    """
    try:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)


def silence(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that the interpreter's exit is quiet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
