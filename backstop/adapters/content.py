"""The content digest of an agent folder: which version is it?"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from backstop.core.canon import short
from backstop.errors import BackstopError


def content_digest(folder: Path) -> str:
    """SHA-256, in hex, over the relative paths and bytes of the folder's files, sorted.

    Compiled code and names that begin with a dot are left out, so that running an agent
    does not make another version of it. Raises `BackstopError`: ``agent-missing`` where
    there is no such folder, ``agent-content`` for a link out of it or an unreadable file.
    """
    total = hashlib.sha256()
    for name, data in files_of(folder):
        # Lengths first: no other split into names and contents gives the same bytes.
        total.update(f"{len(name.encode())} {len(data)}\n{name}".encode())
        total.update(data)
    return total.hexdigest()


def version_of(folder: Path) -> str:
    """What rows name their writing version by: the short form of `content_digest`."""
    return short(content_digest(folder))


def files_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Relative path and content of each file that makes an agent's version, sorted.

    Raises `BackstopError` as `content_digest` does.
    """
    root = folder.resolve()
    if not root.is_dir():
        raise BackstopError(
            f"{folder}: there is no such agent folder; name the folder that holds agent.py",
            slug="agent-missing",
        )
    try:
        for name, path in sorted(_files(root, root)):
            yield name, _bytes(path)
    except OSError as error:
        raise BackstopError(
            f"{error.filename}: cannot be read ({error.strerror}); an agent's version is all of "
            "its files",
            slug="agent-content",
        ) from error


def _files(folder: Path, root: Path) -> Iterator[tuple[str, Path]]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name == "__pycache__" or path.suffix == ".pyc":
            continue
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise BackstopError(
                f"{path}: a link that leaves the agent folder; copy what it names into the folder",
                slug="agent-content",
            )
        if path.is_dir() and not path.is_symlink():
            yield from _files(path, root)
        elif path.is_file() or path.is_dir():
            yield path.relative_to(root).as_posix(), path


def _bytes(path: Path) -> bytes:
    """A file's content; of a link to a folder where it leads, since that folder counts itself."""
    return path.read_bytes() if path.is_file() else os.fsencode(path.readlink())
