"""A folder of entries that were kept for a later run. It promises nothing about what is in it."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backstop.adapters.files import write_atomic

_LARGEST: Final = 256 << 20
_MOST: Final = 64
"""Entries that are kept: a cache is carried to and from the runner as a whole."""

_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFolder:
    """Entries by name, each a file below `folder`; a name is that of a digest."""

    folder: Path

    def get(self, name: str) -> bytes | None:
        """The entry's bytes, whoever wrote them; None if there is none that can be read."""
        try:
            with os.fdopen(os.open(self._path(name), _OPEN), "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
                    return None
                return file.read(_LARGEST)
        except OSError:
            return None

    def put(self, name: str, data: bytes) -> None:
        """Keep an entry, and let the oldest go. Raises `BackstopError` (``file-unwritable``)."""
        path = self._path(name)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, data)
        self._prune(path)

    def _path(self, name: str) -> Path:
        return self.folder / "replays" / f"{name}.entry"

    def _prune(self, newest: Path) -> None:
        with suppress(OSError):
            entries = [path for path in newest.parent.glob("*.entry") if path != newest]
            entries.sort(key=lambda path: path.lstat().st_mtime_ns, reverse=True)
            for path in entries[_MOST - 1 :]:
                path.unlink()
