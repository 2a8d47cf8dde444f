"""What was wrong with a command line, in one line that says what would be right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast


def told(error: Exception, arguments: Sequence[str], root: Callable[[], Any]) -> str | None:
    """Typer's own complaint as ours; None for an exception that is none of its.

    `root` gives the command that all others are below.
    """
    if not callable(getattr(error, "format_message", None)):
        return None
    # Where the class lives differs between Typer's releases.
    said = cast("Callable[[], str]", error.format_message)()  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    path, command = _meant(arguments, root())
    if context is not None:
        return _line(said, context.command_path)
    return _line(_takes(command, getattr(error, "option_name", None)) or said, path)


def _line(said: str, path: str) -> str:
    return f"{said.replace('Value error, ', '').rstrip('.')}; see `{path} --help`"


def _meant(arguments: Sequence[str], command: Any) -> tuple[str, Any]:  # noqa: ANN401
    """The command that a line begins with, by its whole name."""
    path = "backstop"
    for word in arguments:
        below = getattr(command, "commands", {}).get(word)
        if below is None:
            break
        path, command = f"{path} {word}", below
    return path, command


def _takes(command: Any, option: str | None) -> str | None:  # noqa: ANN401
    """What an option takes that was given too little; None where nobody says."""
    for one in command.params:
        if option in one.opts and one.metavar:
            several = f" ({one.nargs} words)" if one.nargs > 1 else ""
            return f"{option} takes {one.metavar}{several}"
    return None
