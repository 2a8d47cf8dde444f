"""A step's log as the runner reads it: workflow commands are obeyed, the rest is shown.

Written after actions/runner: ``::name key=value::data`` at the start of a line, the older
``##[name key=value]data`` anywhere in it, and ``::stop-commands::TOKEN`` until ``::TOKEN::``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

ANNOTATIONS: Final = ("error", "warning", "notice")
MUTE: Final = "stop-commands"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command that the runner obeyed."""

    name: str
    properties: dict[str, str]
    data: str


@dataclass(slots=True)
class Log:
    """What was shown, and what was obeyed."""

    lines: list[str] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def annotations(self) -> list[Command]:
        return [command for command in self.commands if command.name in ANNOTATIONS]

    def named(self, name: str) -> list[Command]:
        return [command for command in self.commands if command.name == name]


def read_log(text: str) -> Log:
    """The log that a step's output becomes."""
    log, muted_by = Log(), ""
    for line in text.splitlines():
        command = _modern(line) or _older(line)
        if muted_by:
            if command is not None and command.name == muted_by:
                muted_by = ""
            else:
                log.lines.append(line)
        elif command is None:
            log.lines.append(line)
        else:
            muted_by = command.data if command.name == MUTE else ""
            log.commands.append(command)
    return log


def _modern(line: str) -> Command | None:
    text = line.lstrip()
    if not text.startswith("::") or (end := text.find("::", 2)) < 0:
        return None
    name, _, rest = text[2:end].partition(" ")
    if not name:
        return None
    properties = {
        key.strip(): _unescaped(value, in_property=True)
        for key, equals, value in (pair.partition("=") for pair in rest.split(","))
        if equals
    }
    return Command(name=name, properties=properties, data=_unescaped(text[end + 2 :]))


def _older(line: str) -> Command | None:
    if (start := line.find("##[")) < 0 or (end := line.find("]", start)) < 0:
        return None
    name, _, rest = line[start + 3 : end].partition(" ")
    pairs = (pair.partition("=") for pair in rest.split(";"))
    properties = {key.strip(): value for key, equals, value in pairs if equals}
    return Command(name=name, properties=properties, data=line[end + 1 :]) if name else None


def _unescaped(text: str, *, in_property: bool = False) -> str:
    for code, sign in (("%0D", "\r"), ("%0A", "\n")):
        text = text.replace(code, sign)
    if in_property:
        text = text.replace("%3A", ":").replace("%2C", ",")
    return text.replace("%25", "%")


def read_pairs(text: str) -> dict[str, str]:
    """The values of a file-command file like GITHUB_OUTPUT.

    Raises `ValueError` for what the runner would refuse.
    """
    pairs: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        equals, here = line.find("="), line.find("<<")
        if here >= 0 and (equals < 0 or here < equals):
            name, delimiter = line[:here], line[here + 2 :]
            value: list[str] = []
            for inner in lines:
                if inner == delimiter:
                    break
                value.append(inner)
            else:
                raise ValueError(f"matching delimiter not found: {delimiter!r}")
            pairs[name] = "\n".join(value)
        elif equals > 0:
            pairs[line[:equals]] = line[equals + 1 :]
        else:
            raise ValueError(f"invalid format: {line!r}")
    return pairs
