"""The runner of GitHub Actions: outputs, the job's summary, annotations, and a log it obeys.

The runner reads commands out of whatever a step prints, on both of its streams: ``::error::``
at the beginning of a line, and the older ``##[error]`` anywhere in one. So nothing that a
candidate or a build has said is printed but between `Runner.untrusted` and its end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Final, TextIO

from backstop.errors import BackstopError

SUMMARY_BYTES: Final = 1024 * 1024
"""What the summary of one step may hold; the runner throws a longer one away, whole."""
ANNOTATIONS: Final = 10
"""How many annotations of a level are shown for one step."""
MESSAGE: Final = 4096
"""Of an annotation, in UTF-16 units, as the runner counts."""
OUTPUT: Final = 4096
"""Characters of an output. It becomes an environment variable of somebody's shell, which takes
no report (G03): those go into a file, and the output names it."""

_OUTPUT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{16,}")


class Level(Enum):
    """How loud an annotation is."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class Runner:
    """Speaks to the runner that set `env` and reads `out`, the step's standard output.

    `chance` gives an unguessable word of at least 16 letters, digits, ``-`` and ``_`` at each
    call. What the runner does not offer (no ``GITHUB_OUTPUT``, say) is not asked of it.
    """

    def __init__(self, env: Mapping[str, str], out: TextIO, *, chance: Callable[[], str]) -> None:
        self._outputs = env.get("GITHUB_OUTPUT", "")
        self._summary = env.get("GITHUB_STEP_SUMMARY", "")
        self._out = out
        self._chance = chance
        self._annotated: dict[Level, int] = dict.fromkeys(Level, 0)
        self._stopped = False

    def output(self, name: str, value: str) -> bool:
        """Give a later step `value`; False where the runner takes no outputs.

        Raises `BackstopError`: ``too-long`` beyond `OUTPUT`, ``runner-file``.
        """
        if not _OUTPUT_NAME.fullmatch(name):
            raise ValueError(f"no output can be named {name!r}")
        if len(value) > OUTPUT:
            raise BackstopError(
                f"the output {name} has {len(value)} characters, and a shell takes no such "
                f"variable (more than {OUTPUT}); write it to a file and give its path",
                slug="too-long",
            )
        end = f"end-{self._word()}"
        while end in value:
            end = f"end-{self._word()}"
        return _append(self._outputs, "GITHUB_OUTPUT", f"{name}<<{end}\n{value}\n{end}\n")

    def summary(self, markdown: str) -> bool:
        """Add `markdown` to the page of the run; False where the runner has none.

        Raises `BackstopError`: ``too-long`` beyond `SUMMARY_BYTES` with what is there already,
        ``runner-file``.
        """
        return _append(self._summary, "GITHUB_STEP_SUMMARY", f"{markdown}\n", most=SUMMARY_BYTES)

    def annotate(
        self,
        level: Level,
        message: str,
        *,
        title: str = "",
        file: str = "",
        line: int | None = None,
    ) -> bool:
        """Show `message` at the run, and beside `line` of `file` if it is part of the change.

        It is cut at `MESSAGE`. False, and nothing said, for the eleventh of a level, which the
        runner would drop.
        """
        if self._annotated[level] >= ANNOTATIONS:
            return False
        self._annotated[level] += 1
        named = (("title", title), ("file", file), ("line", "" if line is None else str(line)))
        details = ",".join(f"{name}={_property(value)}" for name, value in named if value)
        command = f"{level.value} {details}" if details else level.value
        self._command(command, _data(_cut(message, MESSAGE)))
        return True

    def mask(self, secret: str) -> None:
        """Have the runner write ``***`` wherever `secret` turns up from here on."""
        for line in secret.splitlines():
            if line.strip():
                self._command("add-mask", _data(line))

    def say(self, text: str) -> None:
        """Print `text`, which is our own, on one line and as no command."""
        line = " ".join(text.split())
        # A command begins a line, or is the older form, anywhere in it.
        line = f". {line}" if line.startswith("::") else line
        self._print(line.replace("##[", "## ["))

    @contextmanager
    def untrusted(self) -> Iterator[TextIO]:
        """The log, for what others have said: no command in it is obeyed until the end.

        Lead their standard error here too; the two streams have no order among each other.
        """
        word = self._word()
        self._command("stop-commands", word)
        self._stopped = True
        try:
            yield self._out
        finally:
            # They may have left a line open.
            self._stopped = False
            self._print("")
            self._command(word, "")

    def _word(self) -> str:
        word = self._chance()
        if not _TOKEN.fullmatch(word):
            raise ValueError("a word that somebody could guess, or that the runner cannot read")
        return word

    def _command(self, command: str, data: str) -> None:
        if self._stopped:
            raise RuntimeError(f"the runner obeys no {command.partition(' ')[0]} just now")
        self._print(f"::{command}::{data}")

    def _print(self, line: str) -> None:
        self._out.write(_encodable(line) + "\n")
        self._out.flush()


def _append(path: str, variable: str, text: str, *, most: int | None = None) -> bool:
    if not path:
        return False
    data = _encodable(text).encode()
    try:
        with Path(path).open("ab") as file:
            held = os.fstat(file.fileno()).st_size
            if most is not None and held + len(data) > most:
                raise BackstopError(
                    f"{variable} would hold {held + len(data)} bytes, and the runner throws away "
                    f"what has more than {most}; write less, and keep the rest as an artifact",
                    slug="too-long",
                )
            file.write(data)
    except OSError as error:
        raise BackstopError(
            f"{variable} names {path}, which cannot be written: {error.strerror}; the runner "
            "makes this file, so mount it, and run as a user who may write there",
            slug="runner-file",
        ) from None
    return True


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _cut(text: str, units: int) -> str:
    coded = text.encode("utf-16-le", "replace")
    if len(coded) <= 2 * units:
        return text
    # Half a pair at the end is left out; one unit is for the mark.
    return coded[: 2 * (units - 1)].decode("utf-16-le", "ignore") + "…"
