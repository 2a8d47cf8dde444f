"""The parts that GitHub's Markdown is put together from, and how they share the room there is.

Nothing is ever cut here: a part is taken whole or left out and counted.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from backstop.core.divergence import Divergence
from backstop.reports.escape import brief, code, fenced, in_html, plain, prose, public

_NAME: Final = 60
_SENTENCE: Final = 400
_VALUE: Final = 160
_MAX_FIELDS: Final = 3
# What a parameter is called; longer or stranger parts of a pointer may be somebody's data.
_FIELD_NAME: Final = re.compile(r"[A-Za-z_-]+(?:[0-9]{1,2}[A-Za-z_-]*){0,2}|[0-9]{0,4}", re.ASCII)
_DIGEST: Final = re.compile(r"[0-9a-f]{32}|[0-9a-f]{64}", re.ASCII)
_FIELD_LENGTH: Final = 40
_URL: Final = re.compile(r"https?://[A-Za-z0-9.:_-]+(?:/[A-Za-z0-9._~%/@+=?&#-]*)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """How text from an agent is written: always inert, and masked unless values may be seen."""

    show_values: bool

    def name(self, text: str, limit: int = _NAME) -> str:
        """A name, a rule, a value: a code span of at most `limit` characters."""
        return code(self._shown(text), limit=limit)

    def digest(self, text: str) -> str:
        """A name that may be a fingerprint of ours, which no mask may take for a secret."""
        return code(text) if _DIGEST.fullmatch(text) else self.name(text, _SENTENCE)

    def value(self, text: str) -> str:
        """The canonical text of an argument."""
        return self.name(text, _VALUE)

    def words(self, text: str, limit: int = _SENTENCE) -> str:
        """A line that holds words of ours and names of theirs."""
        return prose(self._shown(text), limit=limit)

    def html(self, text: str, limit: int = _NAME) -> str:
        """A name, where HTML is read and Markdown is not."""
        return in_html(self._shown(text), limit=limit)

    def line(self, text: str, limit: int) -> str:
        """Plain text on one line, for places that know no markup."""
        return brief(self._shown(text), limit)

    def pointer(self, pointer: str) -> str:
        """A JSON Pointer whose parts are shown where they are names of fields, not data."""
        if self.show_values:
            return pointer
        return "/".join(
            part if len(part) <= _FIELD_LENGTH and _FIELD_NAME.fullmatch(part) else "…"
            for part in pointer.split("/")
        )

    def fields(self, divergence: Divergence) -> str:
        """Where the two calls differ, and how."""
        paths = divergence.paths
        shown = [code(self.pointer(path), limit=_NAME) for path in paths[:_MAX_FIELDS]]
        if (more := len(paths) - len(shown)) > 0:
            shown.append(f"{more} more")
        how = f" ({', '.join(divergence.difference)})" if divergence.difference else ""
        return f"{', '.join(shown)}{how}" if shown else ""

    def part(self, text: str) -> str:
        """A piece of a sentence: a field's pointer, or a name."""
        return code(self.pointer(text), limit=_NAME) if text.startswith("/") else self.name(text)

    def _shown(self, text: str) -> str:
        return text if self.show_values else public(text)


def link(text: str, url: str) -> str:
    """`text`, which is ours, as a link; without one where `url` is none that we would make."""
    return f"[{text}]({url})" if _URL.fullmatch(url) else text


def bullets(lines: Iterable[str]) -> str:
    """A list of one-line items."""
    return "\n".join(f"- {line}" for line in lines)


def few(lines: Iterable[str], count: int, *, most: int, room: int) -> list[str]:
    """The first of `count` finished `lines`, `most` in `room` at most, and how many more."""
    shown = fitting(itertools.islice(lines, most), room)
    more = count - len(shown)
    return [*shown, f"and {more:,} more"] if more > 0 else shown


def alert(kind: str, text: str) -> str:
    """A coloured box: `kind` is CAUTION, WARNING, IMPORTANT, NOTE or TIP."""
    return "\n".join(f"> {line}" if line else ">" for line in (f"[!{kind}]", *text.split("\n")))


def table(header: Sequence[str], rows: Iterable[str]) -> str:
    """A table of finished `rows`."""
    return "\n".join([row(header), row(["---"] * len(header)), *rows])


def row(cells: Sequence[str]) -> str:
    """A row of a table; `cells` are finished Markdown on one line."""
    return f"| {' | '.join(cells)} |"


def details(summary: str, body: str) -> str:
    """A fold; `summary` is finished HTML on one line, `body` finished Markdown."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def shell(*commands: str) -> str:
    """Commands to copy, each on one line."""
    return fenced("\n".join(plain(command) for command in commands), language="sh")


def size(text: str) -> int:
    """What a text takes of the room: bytes, of which there are never fewer than characters."""
    return len(text.encode("utf-8", "surrogatepass"))


def fitting(pieces: Iterable[str], room: int, *, gap: int = 1) -> list[str]:
    """The first `pieces` that fit into `room` together, each followed by `gap` characters."""
    taken: list[str] = []
    for piece in pieces:
        room -= size(piece) + gap
        if room < 0:
            break
        taken.append(piece)
    return taken


def shares(needs: Sequence[int], room: int) -> list[int]:
    """`room` shared fairly: nobody gets more than it needs, and what is spared goes to others."""
    given = [0] * len(needs)
    left = room
    for position, index in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        given[index] = min(needs[index], left // (len(needs) - position))
        left -= given[index]
    return given
