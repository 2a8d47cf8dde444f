"""What truly happened: a file that every worker appends to, outside of any ledger."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

from benchmarks.hammer.plan import Mode


class Truth:
    """The world outside. Each effect is one line, written at once or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o644)

    def act(self, tick: str, sent_with: str) -> None:
        """The effect happens; `sent_with` is the key that went along."""
        os.write(self._file, f"{tick} {sent_with}\n".encode())

    def effects(self, mode: Mode) -> dict[str, int]:
        """How often each tick's effect happened: a provider that is keyed acts once on a key."""
        sent: dict[str, list[str]] = defaultdict(list)
        for line in self._path.read_text(encoding="utf-8").splitlines():
            tick, sent_with = line.split(" ")
            sent[tick].append(sent_with)
        return {
            tick: len(set(keys)) if mode is Mode.KEYED else len(keys) for tick, keys in sent.items()
        }

    def happened(self, tick: str) -> bool:
        """Whether a tick's effect is there."""
        return f"{tick} " in self._path.read_text(encoding="utf-8")
