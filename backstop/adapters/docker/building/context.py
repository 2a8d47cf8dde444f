"""What goes into an image of a checkout: read once, never through a link, the same bytes each time.

Whoever wrote the pull request wrote the checkout, and may still be changing it: each file is
opened where it lies, below an open folder, and what was read is what is hashed and sent.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tarfile
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Final, Self

from backstop.adapters.docker.building.ignoring import OURS, Ignoring, is_withheld
from backstop.errors import SandboxError

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without waiting: what was a file when it was looked at may be a pipe by now.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK: Final = 1 << 20
_IN_MEMORY: Final = 8 << 20
_IGNORE_BYTES: Final = 64 << 10
_LEDGER: Final = b'"t":"ledger"'
_PACKED: Final = b"\x28\xb5\x2f\xfd"
_FIRST_LINE: Final = 64 << 10
_LEDGER_NAMES: Final = (".jsonl", ".jsonl.zst")
_OF_AN_ENVIRONMENT: Final = "pyvenv.cfg"
_TOP: Final = PurePosixPath()
_WHAT_NEXT: Final = "remove it, or name it in .backstopignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """How much of a checkout is taken: bytes in all, files, links and folders, and how deep."""

    size: int = 512 << 20
    entries: int = 50_000
    depth: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A checkout as a tar archive. `digest` names its content; close it when it was sent.

    `entries` are the names in it, from the top. `withheld` of a checkout's files and folders
    are not in it, as they may hold secrets, caches or a ledger.
    """

    digest: str
    archive: IO[bytes]
    size: int
    entries: frozenset[str]
    withheld: int
    prefix: PurePosixPath

    def read(self, name: str, *, most: int) -> bytes | None:
        """The beginning of a file, by its name from the top; None if there is none.

        Links are followed within the checkout alone: what is not in the archive is not there.
        """
        self.archive.seek(0)
        try:
            with tarfile.open(fileobj=self.archive) as tar:
                # A link to itself is followed until Python has had enough of it.
                with contextlib.suppress(KeyError, RecursionError):
                    file = tar.extractfile(str(self.prefix / name))
                    return None if file is None else file.read(most)
                return None
        finally:
            self.archive.seek(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.archive.close()


def read_context(
    root: Path,
    *,
    prefix: PurePosixPath = _TOP,
    withheld: Collection[PurePosixPath] = (),
    ignore_file: str = OURS,
    ruling: Path | None = None,
    caps: Caps | None = None,
) -> Context:
    """All of the checkout `root` that may be in an image, below `prefix` in the archive.

    `withheld` names more files and folders that stay out, from the checkout's top, and
    `ignore_file` the one that says what else: the checkout's own, or that of the checkout
    `ruling`, so that a change leaves out nothing that its base would have had run.
    Owners are 0, times are 0, modes are 755 or 644. Links are kept whose target is in the checkout.
    Raises `SandboxError`: ``context-refused`` for a link that leads out of it, and for what is
    neither file nor folder; ``context-too-large``; ``context-unreadable``.
    """
    # Handed over open, in the value that closes it.
    archive = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
    try:
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
            reading = _Reading(root, prefix, frozenset(withheld), caps or Caps(), tar)
            reading.read(ignore_file, ruling or root)
        size = archive.tell()
        archive.seek(0)
        digest = hashlib.file_digest(archive, "sha256").hexdigest()
        archive.seek(0)
    except BaseException:
        archive.close()
        raise
    return Context(
        digest=digest,
        archive=archive,
        size=size,
        entries=frozenset(reading.entries),
        withheld=reading.withheld,
        prefix=prefix,
    )


class _Reading:
    """One walk through a checkout."""

    def __init__(
        self,
        root: Path,
        prefix: PurePosixPath,
        named: frozenset[PurePosixPath],
        caps: Caps,
        tar: tarfile.TarFile,
    ) -> None:
        self._root = root
        self._prefix = prefix
        self._named = frozenset(path.parts for path in named)
        self._caps = caps
        self._tar = tar
        self._ignoring = Ignoring("")
        self._bytes = 0
        self._looked_at = 0
        self.entries: set[str] = set()
        self.withheld = 0

    def read(self, ignore_file: str, ruling: Path) -> None:
        """Put everything into the archive."""
        try:
            top = os.open(self._root, _FOLDER & ~os.O_NOFOLLOW)
        except OSError as error:
            raise self._unreadable((), error) from None
        try:
            self._ignoring = Ignoring(_text(ruling, ignore_file))
            for number in range(len(self._prefix.parts)):
                self._add(_member("/".join(self._prefix.parts[: number + 1]), folder=True))
            self._folder(top, ())
        finally:
            os.close(top)

    def _folder(self, opened: int, path: tuple[str, ...]) -> None:
        if len(path) > self._caps.depth:
            raise _too_large(f"{_shown(path)} lies more than {self._caps.depth} folders deep")
        for name in self._names(opened, path):
            below = (*path, name)
            if is_withheld(name) or below in self._named:
                self.withheld += 1
                continue
            try:
                self._entry(opened, below)
            except OSError as error:
                raise self._unreadable(below, error) from None

    def _names(self, opened: int, path: tuple[str, ...]) -> list[str]:
        try:
            with os.scandir(opened) as found:
                names = sorted(entry.name for entry in self._counted(found))
        except OSError as error:
            raise self._unreadable(path, error) from None
        if path and _OF_AN_ENVIRONMENT in names:
            self.withheld += 1
            return []
        return names

    def _counted(self, found: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        for entry in found:
            self._looked_at += 1
            # Ignored ones are looked at as well, and take as long.
            if self._looked_at > 10 * self._caps.entries:
                raise _too_large(f"more than {10 * self._caps.entries:,} files and folders")
            yield entry

    def _entry(self, above: int, path: tuple[str, ...]) -> None:
        name = path[-1]
        mode = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            if not self._ignoring.prunes(path):
                self._subfolder(above, path)
        elif self._ignoring.leaves_out(path):
            return
        elif stat.S_ISLNK(mode):
            self._link(os.readlink(name, dir_fd=above), path)
        elif stat.S_ISREG(mode):
            self._file(above, path)
        else:
            raise _refused(f"{_shown(path)} is neither file nor folder nor link: {_WHAT_NEXT}")

    def _subfolder(self, above: int, path: tuple[str, ...]) -> None:
        opened = os.open(path[-1], _FOLDER, dir_fd=above)
        try:
            if not self._ignoring.leaves_out(path):
                self._put(path, _member("", folder=True))
            self._folder(opened, path)
        finally:
            os.close(opened)

    def _link(self, target: str, path: tuple[str, ...]) -> None:
        place = os.path.normpath("/".join((*path[:-1], target)))
        if target.startswith("/") or place.split("/")[0] == "..":
            raise _refused(
                f"{_shown(path)} is a link to {target!r}, out of the checkout: {_WHAT_NEXT}"
            )
        member = _member("")
        member.type, member.linkname, member.mode = tarfile.SYMTYPE, target, 0o777
        self._put(path, member)

    def _file(self, above: int, path: tuple[str, ...]) -> None:
        with os.fdopen(os.open(path[-1], _FILE, dir_fd=above), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise _refused(f"{_shown(path)} changed while it was read: build once more")
            if self._is_ledger(path, file):
                self.withheld += 1
                return
            self._bytes += found.st_size
            if self._bytes > self._caps.size:
                raise _too_large(f"more than {self._caps.size >> 20} MiB, {_shown(path)} the last")
            member = _member("", mode=found.st_mode)
            member.size = found.st_size
            self._put(path, member, _Exactly(file, found.st_size, path))

    @staticmethod
    def _is_ledger(path: tuple[str, ...], file: IO[bytes]) -> bool:
        """Who knows the record can play it: a candidate never has it."""
        if not path[-1].lower().endswith(_LEDGER_NAMES):
            return False
        start = file.read(_FIRST_LINE)
        file.seek(0)
        first = start.partition(b"\n")[0].replace(b" ", b"")
        # What is compressed is not looked into.
        return _LEDGER in first or start.startswith(_PACKED)

    def _put(
        self, path: tuple[str, ...], member: tarfile.TarInfo, file: _Exactly | None = None
    ) -> None:
        # A kept file may lie in a folder that is not: that one has to be there all the same.
        for length in range(1, len(path)):
            if "/".join(path[:length]) not in self.entries:
                self._put(path[:length], _member("", folder=True))
        self.entries.add("/".join(path))
        if len(self.entries) > self._caps.entries:
            raise _too_large(f"more than {self._caps.entries:,} files and folders")
        member.name = "/".join((*self._prefix.parts, *path))
        self._add(member, file)

    def _add(self, member: tarfile.TarInfo, file: _Exactly | None = None) -> None:
        self._tar.addfile(member, file)

    def _unreadable(self, path: tuple[str, ...], error: OSError) -> SandboxError:
        return SandboxError(
            f"{_shown(path) if path else self._root}: cannot be read: "
            f"{error.strerror or error}; check its owner and mode, or the disk",
            slug="context-unreadable",
        )


class _Exactly:
    """So many bytes of a file, no more and no fewer, whatever becomes of it meanwhile."""

    def __init__(self, file: IO[bytes], size: int, path: tuple[str, ...]) -> None:
        self._file = file
        self._left = size
        self._path = path

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes. Raises `SandboxError` where the file has become shorter."""
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._file.read(wanted)
        if len(data) < wanted:
            raise _refused(f"{_shown(self._path)} changed while it was read: build once more")
        self._left -= len(data)
        return data


def _text(top: Path, name: str) -> str:
    """The beginning of a file at the top of a checkout; nothing if there is none."""
    try:
        opened = os.open(top / name, _FILE)
    except OSError:
        return ""
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return ""
        return file.read(_IGNORE_BYTES).decode("utf-8", "replace")


def _member(name: str, *, folder: bool = False, mode: int = 0) -> tarfile.TarInfo:
    """An entry that says nothing of who made it, when, and on what machine."""
    member = tarfile.TarInfo(name)
    member.mode = 0o755 if folder or mode & stat.S_IXUSR else 0o644
    if folder:
        member.type = tarfile.DIRTYPE
    return member


def _shown(path: tuple[str, ...]) -> str:
    return repr("/".join(path))


def _refused(why: str) -> SandboxError:
    return SandboxError(why, slug="context-refused")


def _too_large(what: str) -> SandboxError:
    return SandboxError(
        f"the checkout is too large for an image: {what}; name what the agent does not need in "
        ".backstopignore",
        slug="context-too-large",
    )
