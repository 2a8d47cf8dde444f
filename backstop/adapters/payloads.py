"""Where the mesh keeps what steps left: in memory, or a file for each, by their digests.

What is kept is checked against its digest when it is read: that it is there is no reason to
trust it. A payload that is too large, was evicted or does not match is none, and the step whose
output it is cannot be verified.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Final

from backstop.adapters.files import write_atomic
from backstop.core.canon import digest as digest_of
from backstop.errors import BackstopError

MOST: Final = 16 * 1024 * 1024
"""Bytes of the largest payload that is kept."""
ALL: Final = 256 * 1024 * 1024
"""Bytes that a memory keeps altogether, unless it is told another limit."""

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class MemoryPayloads:
    """Payloads of this process; of more than `limit` bytes the longest unused ones go."""

    def __init__(self, *, limit: int = ALL) -> None:
        self._limit = limit
        self._held: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def put(self, digest: str, payload: bytes) -> None:
        """Keep it, unless it is larger than `MOST` or than there is room for at all."""
        if len(payload) > min(MOST, self._limit):
            return
        with self._lock:
            if digest in self._held:
                self._held.move_to_end(digest)
                return
            self._held[digest] = payload
            self._size += len(payload)
            while self._size > self._limit:
                _, gone = self._held.popitem(last=False)
                self._size -= len(gone)

    def get(self, digest: str) -> bytes | None:
        """What was kept; None if it is not there any more."""
        with self._lock:
            held = self._held.get(digest)
            if held is not None:
                self._held.move_to_end(digest)
        return held


class FolderPayloads:
    """Payloads as files in `folder`, which is made when something is first kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, digest: str, payload: bytes) -> None:
        """Keep it, durably, unless it is larger than `MOST`.

        Raises `BackstopError` (``file-unwritable``).
        """
        if len(payload) > MOST:
            return
        path = self._path(digest)
        if path is None or path.exists():
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BackstopError(
                f"{path.parent}: cannot be made: {error.strerror or error}. What steps left is "
                "kept there; name another folder.",
                slug="file-unwritable",
            ) from None
        write_atomic(path, payload)

    def get(self, digest: str) -> bytes | None:
        """What was kept; None if it is not there, cannot be read, or is something else."""
        path = self._path(digest)
        try:
            if path is None or path.stat().st_size > MOST:
                return None
            held = path.read_bytes()
        except OSError:
            return None
        return held if digest_of(held) == digest else None

    def _path(self, digest: str) -> Path | None:
        """Where it lies; None for what is no digest, and might lead out of the folder."""
        if _DIGEST.fullmatch(digest) is None:
            return None
        return self._folder / digest[:2] / digest
