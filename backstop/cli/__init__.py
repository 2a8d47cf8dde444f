"""The command ``backstop``: one line for every error, and the exit code that it deserves.

0 PASS, 1 BLOCK, 2 usage or anything that could not be done, 3 INCONCLUSIVE, 130 interrupted.
Exit code 1 means a blocked deploy and nothing else, so no library may choose the code.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from backstop.cli import usage
from backstop.cli.faults import Interrupted, OutputClosed
from backstop.cli.streams import silence
from backstop.errors import BackstopError, UsageError
from backstop.reports.escape import plain
from backstop.wiring.faults import DEBUG, as_ours

__all__ = ["main", "run"]


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    _occupy_closed_streams()
    sys.exit(run(sys.argv[1:], debug=bool(os.environ.get(DEBUG))))


def _occupy_closed_streams() -> None:
    """Put something that refuses writing where a standard stream was closed (``>&-``).

    Else the next file that is opened would take its number, and get what was meant for a reader.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)
    sys.stdout = sys.stdout or open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False, encoding="utf-8")  # noqa: SIM115


def _root() -> Any:  # noqa: ANN401 - Typer's own class, which lives elsewhere in each release
    import typer

    from backstop.cli.app import app

    return typer.main.get_command(app)


def _invoke(arguments: Sequence[str]) -> int:
    import typer

    command = _root()
    try:
        # Not through `main`: there a closed pipe would exit with 1, which means BLOCK.
        with command.make_context("backstop", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return 0


def run(
    arguments: Sequence[str],
    *,
    debug: bool = False,
    command: Callable[[Sequence[str]], int] = _invoke,
) -> int:
    """Run a command; the exit code. `debug` shows the traceback of whatever went wrong."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A terminal that cannot show a letter must not end the gate.
            reconfigure(errors="backslashreplace")
    try:
        code = command(arguments)
        sys.stdout.flush()
        return code
    except Exception as error:  # noqa: BLE001  # whatever it is becomes one line, never a traceback
        if debug:
            traceback.print_exc()
        told = _told(error, arguments)
    except KeyboardInterrupt:
        told = Interrupted("stopped by Ctrl-C; nothing was decided: run it again")
    try:
        sys.stdout.flush()
    except OSError:
        # A closed pipe or a full disk: the interpreter would try again at its exit, and fail.
        silence(sys.stdout)
    try:
        sys.stderr.write(f"error[{told.slug}]: {plain(str(told))}\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)
    return told.exit_code


def _told(error: Exception, arguments: Sequence[str]) -> BackstopError:
    """Any exception as one of ours."""
    if isinstance(error, BrokenPipeError) or (
        isinstance(error, OSError) and error.errno == errno.EBADF
    ):
        return OutputClosed("the output was closed before all was written; nothing is decided")
    if (said := usage.told(error, arguments, _root)) is not None:
        return UsageError(said)
    return as_ours(error)
