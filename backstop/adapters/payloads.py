"""Where the mesh keeps what steps left: in memory, or a file for each, by their digests.

A folder's files are written to the disk beside the claim of an effect that rests on them, and else
when the machine finds time: to wait for it at each step costs more than the whole recording. A step
whose payload a power failure took is not verified, and is run again.

What is kept is checked against its digest when it is read: that it is there is no reason to
trust it. A payload that is too large, was evicted or does not match is none, and the step whose
output it is cannot be verified.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Final

from backstop.adapters.files import sync_files
from backstop.core.canon import digest as digest_of
from backstop.errors import BackstopError

MOST: Final = 16 * 1024 * 1024
"""Bytes of the largest payload that is kept."""
ALL: Final = 256 * 1024 * 1024
"""Bytes that a memory keeps altogether, unless it is told another limit."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_MANY: Final = 1024
"""Files that wait for a `sync` before there is one, whether it is asked for or not."""

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

    def sync(self) -> None:
        """Nothing outlives the process."""


class FolderPayloads:
    """Payloads as files in `folder`, which is made when something is first kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: list[Path] = []
        """Since they were last made to outlive a power failure."""
        self._lock = Lock()

    def put(self, digest: str, payload: bytes) -> None:
        """Keep it, unless it is larger than `MOST`; a power failure may take it until `sync`.

        Raises `BackstopError` (``file-unwritable``).
        """
        path = self._path(digest)
        if path is None or len(payload) > MOST:
            return
        try:
            file = self._opened(path)
            if file is None and self.get(digest) is not None:
                return
            # In its place, without being emptied first: whoever else writes there, or did, and was
            # cut off, writes the same bytes.
            with os.fdopen(os.open(path, os.O_WRONLY) if file is None else file, "wb") as whole:
                whole.write(payload)
                whole.truncate()
        except OSError as error:
            raise BackstopError(
                f"{path}: cannot be written: {error.strerror or error}. What steps left is kept "
                "there; see to the folder and the room on its disk, or name another folder.",
                slug="file-unwritable",
            ) from None
        with self._lock:
            self._written.append(path)
            if len(self._written) >= _MANY:
                self._synced()

    def _opened(self, path: Path) -> int | None:
        """A new file at the path; None if there is one."""
        try:
            return os.open(path, _NEW, 0o666)
        except FileExistsError:
            return None
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            return self._opened(path)

    def sync(self) -> None:
        """What was kept until now outlives a power failure.

        Raises `BackstopError` (``file-unwritable``).
        """
        with self._lock:
            self._synced()

    def _synced(self) -> None:
        sync_files(self._written)
        self._written.clear()

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
