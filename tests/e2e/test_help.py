"""Each command's help, as a newcomer reads it at 80 columns: a line for each option, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from backstop.cli.app import app

OPTION = re.compile(r"^  (?P<name>-\S+(?: [A-Za-z][^ <>]*)*)(?: {2,}(?P<help>.+))?$")


def commands(of: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, of
    for name, one in getattr(of, "commands", {}).items():
        yield from commands(one, (*path, name))


ALL = dict(commands(typer.main.get_command(app)))


def shown(path: tuple[str, ...]) -> list[str]:
    """The help of a command at 80 columns, by lines."""
    command = ALL[path]
    # Of 80 columns two are left free.
    context = command.make_context(
        " ".join(("backstop", *path)), [], resilient_parsing=True, terminal_width=78
    )
    with context:
        return str(command.get_help(context)).splitlines()


def options_in(lines: list[str]) -> list[str]:
    """The lines below the heading of the options."""
    at = lines.index("Options:")
    return [line for line in lines[at + 1 :] if line.strip()]


@pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "backstop")
def test_every_option_has_one_line_with_a_word_for_what_it_takes_and_what_it_does(
    path: tuple[str, ...],
) -> None:
    lines = shown(path)
    assert all(len(line) <= 80 for line in lines)
    end = lines.index("Commands:") if "Commands:" in lines else len(lines)
    for line in options_in(lines[:end]):
        found = OPTION.match(line)
        assert found is not None, line
        assert found["help"], line


def test_a_line_that_is_wrapped_or_names_a_type_of_ours_would_be_seen() -> None:
    """The control: what the help of Typer looks like by itself."""
    for line in ("  --agent <list[str]>  Only this one.", "                 of the config."):
        assert OPTION.match(line) is None
    bare = OPTION.match("  --agent NAME")
    assert bare is not None
    assert bare["help"] is None
