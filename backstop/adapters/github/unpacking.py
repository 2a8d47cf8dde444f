"""Unpacks the archive of a commit: files, folders and links that stay inside, and no more.

Everything is written into a folder that was empty, each name once. Links come last, so that
nothing is ever written through one, and those that lead out are taken away again.
"""

from __future__ import annotations

import gzip
import os
import stat
import tarfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from backstop.errors import BackstopError

_AT_ONCE: Final = 1024 * 1024
"""The most that is read in one piece: no header of a commit's archive is longer."""
_CHUNK: Final = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What an archive may come to: bytes as sent, bytes and names once unpacked."""

    packed: int = 512 * 1024 * 1024
    unpacked: int = 2 * 1024 * 1024 * 1024
    names: int = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """What came out: the commit that the archive says it is of, and links that were not made."""

    commit: str | None
    left_out: tuple[str, ...]


def unpack(packed: BinaryIO, into: Path, *, bounds: Bounds) -> Unpacked:
    """Unpack the gzipped archive at the beginning of `packed` into the empty folder `into`.

    The folder that all of it lies in is left away. Raises `BackstopError` (``archive``) for what
    no archive of a commit holds, for one that is broken or beyond `bounds`, and for a full disk;
    what was written till then stays.
    """
    try:
        with (
            _Bounded(packed, bounds.unpacked) as plain,
            tarfile.TarFile(fileobj=plain, mode="r") as members,
        ):
            work = _Work(into=into)
            for count, member in enumerate(members, start=1):
                if count > bounds.names:
                    raise _refused(f"holds more than {bounds.names} names")
                work.take(members, member)
            return Unpacked(
                commit=members.pax_headers.get("comment"), left_out=tuple(work.make_links())
            )
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError) as error:
        raise _refused(f"is broken ({error})") from None
    except (FileExistsError, NotADirectoryError):
        raise _refused("names one place twice") from None
    except OSError as error:
        raise _refused(f"cannot be unpacked: {error.strerror}") from None


@dataclass(slots=True, kw_only=True)
class _Work:
    """One unpacking: the folders made so far, and the links still to be made."""

    into: Path
    top: str | None = None
    folders: set[tuple[str, ...]] = field(default_factory=lambda: {()})
    links: list[tuple[Path, str]] = field(default_factory=list)

    def take(self, members: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = self._inside(member.name)
        if member.isdir():
            self._folder(parts)
        elif not parts or member.issparse():
            raise _refused("holds what no commit does")
        elif member.issym():
            self._folder(parts[:-1])
            self.links.append((self.into.joinpath(*parts), member.linkname))
        elif member.isreg():
            self._folder(parts[:-1])
            self._file(members, member, self.into.joinpath(*parts))
        else:
            raise _refused("holds a device, a pipe or a hard link, which no commit does")

    def make_links(self) -> list[str]:
        """Make the links, and take away again which lead out; the names of these."""
        root = os.path.realpath(self.into)
        for path, target in self.links:
            path.symlink_to(target)
        # Only now is it certain where a link leads: the way may go through others.
        out = [
            path
            for path, target in self.links
            if target.startswith("/") or not _within(os.path.realpath(path), root)
        ]
        for path in out:
            path.unlink()
        return sorted(os.fspath(path.relative_to(self.into)) for path in out)

    def _inside(self, name: str) -> tuple[str, ...]:
        top, *parts = name.removesuffix("/").split("/")
        if any(part in {"", ".", ".."} or "\0" in part for part in (top, *parts)):
            raise _refused("holds a name that leads out of it")
        if self.top not in {None, top}:
            raise _refused("does not lie in one folder")
        self.top = top
        return tuple(parts)

    def _folder(self, parts: tuple[str, ...]) -> None:
        for depth in range(1, len(parts) + 1):
            if (here := parts[:depth]) not in self.folders:
                self.into.joinpath(*here).mkdir()
                self.folders.add(here)

    @staticmethod
    def _file(members: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
        mode = 0o755 if member.mode & stat.S_IXUSR else 0o644
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        content = members.extractfile(member)
        with open(os.open(path, flags, mode), "wb") as file:  # noqa: PTH123 - of a descriptor
            while content is not None and (chunk := content.read(_CHUNK)):
                file.write(chunk)


class _Bounded(gzip.GzipFile):
    """What is unpacked from an archive, as far as `most` bytes, and never much in one piece."""

    def __init__(self, packed: BinaryIO, most: int) -> None:
        super().__init__(fileobj=packed, mode="rb")
        self._most = most

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= _AT_ONCE:
            raise _refused("has a header longer than any")
        data = super().read(size)
        self._check(self.tell())
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._check(offset)
        return super().seek(offset, whence)

    def _check(self, position: int) -> None:
        if position > self._most:
            raise _refused(f"unpacks to more than {self._most} bytes")


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root + os.sep)


def _refused(what: str) -> BackstopError:
    return BackstopError(
        f"the archive of the base commit {what}; check the base out in a step before, and name "
        "its folder as `base`",
        slug="archive",
    )
