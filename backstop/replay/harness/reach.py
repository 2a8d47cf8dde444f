"""Which of the candidate's code its runs reach, and which of its files they read (D7).

Modules in the candidate's folder are compiled with a mark at the start of every block. A
mark writes one byte: cheap enough for inner loops, and unseen by the candidate, whose
files, line numbers and names stay what they are.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, Final

from ...adk.blocks import MARKS, marked

_CODE: Final = (".py", ".pyc")


class Reach:
    """The marks of one process; a run that is forked off goes on with a copy of them.

    Files are told of by their paths from `folder`, the agent's, also those that lie elsewhere in
    its `project`.
    """

    def __init__(self, folder: Path, *, project: Path) -> None:
        self._folder = folder.resolve()
        self._project = project.resolve()
        self._packages = [Path(one).resolve() for one in {sys.prefix, sys.base_prefix}]
        self._marks = bytearray()
        self._files: dict[str, range] = {}
        self._told: set[tuple[str, int]] = set()
        self._read: set[str] = set()

    def install(self) -> None:
        """Mark whatever is imported from the folder from now on, by whichever loader's name."""
        vars(builtins)[MARKS] = self._marks
        original = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
            return self._compiled(loader.get_filename(name)) or original(loader, name)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]

    def told(self, opened: Iterable[str]) -> dict[str, Any]:
        """What `Ready` and `RunDone` say of it: blocks and read files not told of before."""
        reached = {
            file: found
            for file, numbers in sorted(self._files.items())
            if (found := [n for n, at in enumerate(numbers) if self._is_news(file, n, at)])
        }
        read = {name for path in opened if (name := self._known(path)) is not None}
        news = sorted(read - self._read)
        self._read |= read
        return {"reached": reached, "opened": news}

    def _is_news(self, file: str, number: int, at: int) -> bool:
        if not self._marks[at] or (file, number) in self._told:
            return False
        self._told.add((file, number))
        return True

    def _compiled(self, path: str) -> CodeType | None:
        """The marked code of a module of the candidate's; None for any other."""
        file = self._within(path)
        if file is None:
            return None
        first = len(self._marks)
        try:
            tree, count = marked(Path(path).read_bytes(), path, first)
            code = compile(tree, path, "exec", dont_inherit=True)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return None  # Python's own way says what is wrong
        self._marks.extend(bytes(count))
        self._marks[first] = 1  # whoever asks for a module's code runs it
        self._files[file] = range(first, first + count)
        return code

    def _known(self, path: str) -> str | None:
        """What a file is told of as that was read; None if it is none of the project's data."""
        if (name := self._within(path)) is not None or path.endswith(_CODE):
            return name
        real = Path(path).resolve()
        if not real.is_relative_to(self._project) or any(map(real.is_relative_to, self._packages)):
            return None
        return os.path.relpath(real, self._folder).replace(os.sep, "/")

    def _within(self, path: str) -> str | None:
        """The path relative to the candidate's folder; None if it lies elsewhere."""
        real = Path(path).resolve()
        if not real.is_relative_to(self._folder):
            return None
        return real.relative_to(self._folder).as_posix()
