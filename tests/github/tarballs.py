"""Archives of commits, as GitHub packs them: one folder, the commit in a comment, gzip."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable

from tests.github.shapes import Commit


def archive_of(commit: Commit, repo: str) -> bytes:
    """What the API hands out for a commit."""
    top = f"{repo.replace('/', '-')}-{commit.sha[:7]}"
    members = [folder(top)]
    members += [file(f"{top}/{path}", data) for path, data in sorted(commit.files.items())]
    members += [link(f"{top}/{path}", to) for path, to in sorted(commit.links.items())]
    return packed(members, comment=commit.sha)


Member = tuple[tarfile.TarInfo, bytes]


def folder(name: str) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, 0o775
    return info, b""


def file(name: str, data: bytes, *, mode: int = 0o664) -> Member:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    return info, data


def link(name: str, target: str) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info, b""


def special(name: str, kind: bytes, target: str = "") -> Member:
    """A device, a pipe, a hard link."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


def packed(members: Iterable[Member], *, comment: str | None = None) -> bytes:
    """A gzipped archive of these, in this order."""
    plain = io.BytesIO()
    headers = {} if comment is None else {"comment": comment}
    with tarfile.open(
        fileobj=plain, mode="w", format=tarfile.PAX_FORMAT, pax_headers=headers
    ) as out:
        for info, data in members:
            out.addfile(info, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), mtime=0)
