"""The container action: what a workflow step is told, and what it does with it."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import MutableMapping
from types import FrameType
from typing import Final

from backstop.action.step import run

__all__ = ["forget", "main"]

_OF_THE_RUNNER: Final = ("ACTIONS_", "GITHUB_", "INPUT_", "RUNNER_")


def main() -> int:
    """Run the step that this process is for; its exit code."""
    environment = dict(os.environ)
    forget(os.environ)
    # As process 1 of its container it would not even notice that it is to end.
    signal.signal(signal.SIGTERM, _interrupt)
    # The runner reads both streams, and knows no order between the two.
    sys.stdout.flush()
    os.dup2(1, 2)
    try:
        return run(environment, sys.stdout, chance=lambda: secrets.token_urlsafe(24))
    except BaseException as error:  # noqa: BLE001  # the interpreter's own exit code means BLOCK
        sys.stdout.write(
            f"::error title=Backstop::error[bug]: {type(error).__name__}; please report it\n"
        )
        return 2


def forget(environment: MutableMapping[str, str]) -> None:
    """Leave nothing of the runner's to the processes that this one starts: tokens least of all."""
    for name in [name for name in environment if name.startswith(_OF_THE_RUNNER)]:
        del environment[name]


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
