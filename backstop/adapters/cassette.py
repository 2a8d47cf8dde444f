"""A cassette on disk: what a live model answered, kept so that nobody has to be asked again.

The file is replaced as a whole, so that it is a valid one at every moment: after a crash it
holds all answers but the last few, after an interruption all of them.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final, Self

from backstop.adapters.files import check_writable, read_bytes, write_atomic
from backstop.core.cassette import Answer, CassetteFault, Place, read, write

_EAGER: Final = 16
"""Answers are written once more are new than this part of all: less work than once each."""


class Cassette:
    """Answers in memory, and in a file where there is one. Save it in the end."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._ledgers: dict[str, str] = {}
        self._answers: dict[Place, Answer] = {}
        self._new = 0
        self._lock = threading.Lock()

    @classmethod
    def at(cls, path: Path | None, *, is_read_only: bool = False) -> Self:
        """The cassette in the file `path`, a blank one where there is none yet.

        One that `is_read_only` need not be writable: nothing will be kept on it.
        Raises `BackstopError`: `CassetteFault`, and what reading and writing a file raise.
        """
        found = cls(path)
        if path is not None:
            if path.exists():
                recorded = read(read_bytes(path), name=str(path))
                found._ledgers = dict(recorded.ledgers)
                found._answers = {answer.place: answer for answer in recorded.answers}
            if not is_read_only:
                check_writable(path)
        return found

    def of(self, agent: str, ledger: str) -> list[Answer]:
        """The answers for an agent, given for the ledger with this digest.

        Raises `CassetteFault` (``cassette-foreign``) where they were given for another one.
        """
        known = self._ledgers.setdefault(agent, ledger)
        if known != ledger:
            raise CassetteFault(
                f"{self._path}: its answers for agent {agent} were given to another ledger; name "
                "another file, one that is not there yet is made anew",
                slug="cassette-foreign",
            )
        return [answer for answer in self._answers.values() if answer.agent == agent]

    def keep(self, answer: Answer) -> None:
        """Keep an answer; it is on disk soon, and after `save` at the latest."""
        with self._lock:
            self._answers[answer.place] = answer
            self._new += 1
            if self._new * _EAGER > len(self._answers):
                self._write()

    def save(self) -> None:
        """Write what is not yet on disk."""
        with self._lock:
            if self._new:
                self._write()

    def _write(self) -> None:
        if self._path is not None:
            write_atomic(self._path, write(self._ledgers, self._answers.values()))
        self._new = 0
