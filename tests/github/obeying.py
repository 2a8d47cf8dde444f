"""The ear of the runner: which commands it obeys in a log, and what it reads in its files.

Written after the rules of actions/runner: lines end at any of CR, LF and CRLF; a command begins
a line after blanks (``::name a=b,c=d::data``), or stands anywhere in it in the older form
(``##[name a=b;c=d]data``); after ``::stop-commands::word`` none is obeyed until ``::word::``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_NEW: Final = re.compile(r"\s*::([^:\s]+)(?: (.*?))?::(.*)", re.DOTALL)
_OLD: Final = re.compile(r"##\[([^\]\s]+)(?: ([^\]]*))?\](.*)", re.DOTALL)
_KNOWN: Final = frozenset(
    {
        "add-mask",
        "debug",
        "endgroup",
        "error",
        "group",
        "notice",
        "set-output",
        "stop-commands",
        "warning",
    }
)


@dataclass(frozen=True, slots=True)
class Heard:
    """A command that the runner obeys."""

    command: str
    properties: dict[str, str]
    data: str


def listen(log: str) -> list[Heard]:
    """The commands that are obeyed in a log, in order."""
    obeyed: list[Heard] = []
    word: str | None = None
    for line in re.split(r"\r\n|\r|\n", log):
        if (one := _parsed(line, word)) is None or (word is not None and one.command != word):
            continue
        obeyed.append(one)
        word = one.data if one.command == "stop-commands" else None
    return obeyed


def outputs_in(text: str) -> list[tuple[str, str]]:
    """Names and values in a file of outputs, in order; raises on what the runner refuses."""
    found: list[tuple[str, str]] = []
    rest = text
    while rest:
        head, _, rest = rest.partition("\n")
        name, mark, end = head.partition("<<")
        if not mark:
            raise ValueError(head)
        value, closed, rest = f"\n{rest}".partition(f"\n{end}\n")
        if not closed:
            raise ValueError(f"no {end}")
        found.append((name, value.removeprefix("\n")))
    return found


def _parsed(line: str, word: str | None) -> Heard | None:
    known = _KNOWN if word is None else _KNOWN | {word}
    if (new := _NEW.match(line)) and new[1] in known:
        return Heard(new[1], _properties(new[2], ",", property_=True), _plain(new[3]))
    if (old := _OLD.search(line)) and old[1] in known:
        return Heard(old[1], _properties(old[2], ";"), old[3])
    return None


def _properties(text: str | None, mark: str, *, property_: bool = False) -> dict[str, str]:
    pairs = (part.partition("=") for part in (text or "").split(mark) if part)
    return {name: _plain(value, property_=property_) for name, _, value in pairs}


def _plain(text: str, *, property_: bool = False) -> str:
    if property_:
        text = text.replace("%3A", ":").replace("%2C", ",")
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
