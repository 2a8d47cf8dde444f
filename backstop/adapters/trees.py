"""What a checkout holds: every file below a folder by the digest of its bytes, through no link."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backstop.errors import BackstopError

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without waiting: a pipe in a checkout has no other end.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

LONGEST_TEXT: Final = 1 << 20
"""Bytes of a file that are looked into: more than any source that a person wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much is read: bytes and files in all, and how many folders deep."""

    size: int = 256 << 20
    files: int = 20_000
    depth: int = 64


class TooMuch(BackstopError):
    """There is more below a folder than is read."""

    slug = "checkout-too-large"


def read_tree(
    root: Path, *, without: Callable[[str], bool], bounds: Bounds | None = None
) -> Mapping[str, str]:
    """Digests by path from `root`, with ``/``; what `without` says of a path is not looked at.

    Of a link it is the digest of where it leads, of anything that is no file one that says so.
    Raises `TooMuch`, and `BackstopError` (``checkout-unreadable``).
    """
    reading = _Reading(root, without, bounds or Bounds())
    try:
        top = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            reading.folder(top, "", 0)
        finally:
            os.close(top)
    except OSError as error:
        raise BackstopError(
            f"{root}: {error.filename or 'a file'} in it cannot be read: {error.strerror}; check "
            "its owner and mode",
            slug="checkout-unreadable",
        ) from None
    return reading.found


def text_in(root: Path, path: str) -> str:
    """The text of a file that `read_tree` found, as far as one can be read; of a link its target.

    Bytes that are no text are replaced; of a file beyond `LONGEST_TEXT` it is the beginning.
    """
    place = root / path
    try:
        if place.is_symlink():
            return str(place.readlink())
        with os.fdopen(os.open(place, _FILE), "rb") as file:
            return file.read(LONGEST_TEXT).decode("utf-8", "replace")
    except OSError:
        return ""


class _Reading:
    def __init__(self, root: Path, without: Callable[[str], bool], bounds: Bounds) -> None:
        self._root = root
        self._without = without
        self._bounds = bounds
        self._size = 0
        self.found: dict[str, str] = {}

    def folder(self, opened: int, path: str, depth: int) -> None:
        """Read what is in an open folder."""
        if depth > self._bounds.depth:
            raise self._too_much(f"folders more than {self._bounds.depth} deep")
        for name in sorted(os.listdir(opened)):
            below = f"{path}/{name}" if path else name
            if self._without(below):
                continue
            mode = os.stat(name, dir_fd=opened, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                inner = os.open(name, _FOLDER, dir_fd=opened)
                try:
                    self.folder(inner, below, depth + 1)
                finally:
                    os.close(inner)
            else:
                self._entry(opened, name, below, mode)

    def _entry(self, above: int, name: str, path: str, mode: int) -> None:
        if len(self.found) >= self._bounds.files:
            raise self._too_much(f"more than {self._bounds.files:,} files")
        if stat.S_ISLNK(mode):
            self.found[path] = f"link {os.readlink(name, dir_fd=above)}"
        elif stat.S_ISREG(mode):
            self.found[path] = self._digest(above, name)
        else:
            self.found[path] = "no file"

    def _digest(self, above: int, name: str) -> str:
        total = hashlib.sha256()
        for chunk in _chunks(os.open(name, _FILE, dir_fd=above)):
            self._size += len(chunk)
            if self._size > self._bounds.size:
                raise self._too_much(f"more than {self._bounds.size >> 20} MiB")
            total.update(chunk)
        return total.hexdigest()

    def _too_much(self, what: str) -> TooMuch:
        return TooMuch(f"{self._root}: holds {what}, too much to be compared file by file")


def _chunks(opened: int) -> Iterator[bytes]:
    with os.fdopen(opened, "rb") as file:
        while chunk := file.read(1 << 20):
            yield chunk
