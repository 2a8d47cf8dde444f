"""Files on disk: read whole, read in chunks, written whole or not at all.

A name that ends in ``.zst`` is read and written compressed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final, Literal, TypeAlias

from backstop.errors import BackstopError, LedgerError, MissingExtra

CHUNK: Final = 1 << 20
"""Bytes that are read at a time."""

MAX_WHOLE: Final = 1 << 30
"""Bytes of the largest file that is taken into memory, compressed or not."""

MAX_INFLATED: Final = 1 << 36
"""Bytes that a compressed file may stream: 64 GiB. More is taken for a decompression bomb."""

_MAX_WINDOW: Final = 1 << 27  # what the zstd command itself accepts without being asked

Kind: TypeAlias = Literal["ledger", "intents", "file"]
"""What a file is to its reader: errors speak of it."""


class FileFault(BackstopError):
    """A file cannot be read or written."""

    slug = "file-unusable"


def read_bytes(path: Path, *, cap: int = MAX_WHOLE, kind: Kind = "file") -> bytes:
    """A file's whole content, decompressed. At most `cap` bytes.

    Raises `BackstopError`: ledger-missing, intents-missing, file-missing, file-unusable,
    file-too-large, file-damaged, missing-extra.
    """
    return b"".join(_stream(path, cap=cap, kind=kind, whole=True))


def chunks(path: Path, *, cap: int = MAX_INFLATED, kind: Kind = "file") -> Iterator[bytes]:
    """A file's content in chunks of at most `CHUNK` bytes, decompressed; memory is bounded.

    `cap` bounds only what a compressed file may become. Raises as `read_bytes` does, the first
    time at the first chunk.
    """
    yield from _stream(path, cap=cap, kind=kind, whole=False)


def _stream(path: Path, *, cap: int, kind: Kind, whole: bool) -> Iterator[bytes]:
    packed = path.suffix == ".zst"
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if whole and stat.S_ISREG(found.st_mode) and found.st_size > cap:
                raise _too_large(path, cap)
            source = _inflated(file, path) if packed else _plain(file)
            yield from _capped(source, path, cap) if packed or whole else source
    except OSError as exc:
        raise _unreadable(path, exc, kind) from None


def _plain(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk


def _inflated(file: IO[bytes], path: Path) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as exc:
        raise _no_zstandard(path) from exc
    unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    try:
        with unpacker.stream_reader(file, read_across_frames=True, closefd=False) as reader:
            while chunk := reader.read(CHUNK):
                yield chunk
    except zstandard.ZstdError as exc:
        raise FileFault(
            f"{path}: not a zstd file, or a damaged one ({exc}). Restore it, or name it without "
            ".zst if it is not compressed.",
            slug="file-damaged",
        ) from None


def _no_zstandard(path: Path) -> MissingExtra:
    return MissingExtra(f"{path}: compressed files need `pip install 'backstop-gate[zst]'`.")


def _capped(source: Iterable[bytes], path: Path, cap: int) -> Iterator[bytes]:
    size = 0
    for chunk in source:
        size += len(chunk)
        if size > cap:
            raise _too_large(path, cap)
        yield chunk


def _too_large(path: Path, cap: int) -> FileFault:
    return FileFault(
        f"{path}: more than {cap:,} bytes, so it was not read whole. If it is a ledger, "
        "`backstop ledger verify` streams it and says what is wrong with it.",
        slug="file-too-large",
    )


def _unreadable(path: Path, exc: OSError, kind: Kind) -> BackstopError:
    match exc:
        case FileNotFoundError() | NotADirectoryError():
            return _missing(path, kind)
        case IsADirectoryError():
            return FileFault(f"{path}: a directory, where a file is needed. Name the file in it.")
        case PermissionError():
            return FileFault(f"{path}: no permission to read it. Check its owner and mode.")
        case _:
            return FileFault(f"{path}: cannot be read: {exc.strerror or exc}. Check the disk.")


def _missing(path: Path, kind: Kind) -> BackstopError:
    match kind:
        case "ledger":
            return LedgerError(
                f"{path}: there is no such ledger. Check `ledger:` in backstop.yaml, or record, "
                "pull or import one.",
                slug="ledger-missing",
            )
        case "intents":
            return FileFault(
                f"{path}: there is no such intents file. `backstop replay --out` writes one.",
                slug="intents-missing",
            )
        case "file":
            return FileFault(f"{path}: there is no such file. Check the name.", slug="file-missing")


def write_atomic(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a whole file, or leave things as they were; durable once this returns.

    The content goes to a file beside it first, so readers see the old or the new one only. A
    symbolic link is followed, an existing file's mode kept. What is no file (a pipe, a device)
    is written to once all is there, and never replaced. Whatever `data` raises passes through.
    Raises `BackstopError` (file-unwritable, missing-extra).
    """
    target = Path(os.path.realpath(path))
    pieces: Iterable[bytes] = (data,) if isinstance(data, bytes) else data
    if path.suffix == ".zst":
        pieces = _deflated(pieces, path)
    if _is_special(path):
        _write_through(path, b"".join(pieces))
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        _write_beside(beside, target, pieces)
        beside.replace(target)
        _sync(target.parent)
    except BaseException as exc:
        # Also when interrupted: nothing half-written stays behind.
        with contextlib.suppress(OSError):
            beside.unlink()
        if isinstance(exc, OSError):
            raise _unwritable(path, exc) from None
        raise


def sync_files(paths: Iterable[Path]) -> None:
    """See to it that these files, as they stand, outlive a power failure.

    One that is gone meanwhile is passed over. Raises `BackstopError` (file-unwritable).
    """
    files = list(paths)
    for path in (*files, *{file.parent: None for file in files}):
        try:
            _sync(path)
        except FileNotFoundError:
            continue
        except OSError as exc:
            raise _unwritable(path, exc) from None


def check_writable(path: Path) -> None:
    """Raises `BackstopError` where `write_atomic` could not write `path`, as that would.

    For work that takes long: better known before it than after. Nothing stays behind.
    """
    if path.suffix == ".zst":
        b"".join(_deflated((), path))
    if _is_special(path):
        return
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with beside.open("xb"):
            beside.unlink()
    except OSError as exc:
        raise _unwritable(path, exc) from None


def _is_special(path: Path) -> bool:
    """Is there something that is neither a file nor a folder, like the pipe `/dev/stdout`?"""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _write_through(path: Path, data: bytes) -> None:
    try:
        # Of a pipe that nobody reads the opening fails, where it would else wait for ever.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "wb") as file:
            os.set_blocking(file.fileno(), True)
            file.write(data)
    except OSError as exc:
        raise _unwritable(path, exc) from None


def _write_beside(beside: Path, target: Path, pieces: Iterable[bytes]) -> None:
    with beside.open("xb") as file:
        for piece in pieces:
            file.write(piece)
        with contextlib.suppress(FileNotFoundError):
            beside.chmod(stat.S_IMODE(target.stat().st_mode))
        file.flush()
        os.fsync(file.fileno())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _deflated(pieces: Iterable[bytes], path: Path) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as exc:
        raise _no_zstandard(path) from exc
    packer = zstandard.ZstdCompressor(level=9).compressobj()
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def _unwritable(path: Path, exc: OSError) -> FileFault:
    if not path.parent.exists():
        return FileFault(
            f"{path}: cannot be written: there is no folder {path.parent}. Nothing was changed; "
            "make the folder first.",
            slug="file-unwritable",
        )
    return FileFault(
        f"{path}: cannot be written: {exc.strerror or exc}. Nothing was changed; check the folder, "
        "its permissions and the space on the disk.",
        slug="file-unwritable",
    )
