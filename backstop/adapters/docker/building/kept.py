"""Layers with packages that outlive their daemon: files in a folder, each under a seal.

The folder travels between machines (a cache of GitHub's, say), and a pull request's own job can
write to it. A layer that was tampered with could make a base behave like its candidate, so only
what carries the seal of the secret is believed. What is not kept, or not believed, is installed.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from backstop.adapters.docker.building.daemon import said_of

_MAGIC: Final = b"backstop-layer 1\n"
_SEAL_LENGTH: Final = 64
_MOST_FACTS: Final = 4_096
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLayers:
    """Layers by name, in `folder`; `secret` seals them. The newest `most` stay."""

    folder: Path
    secret: bytes = field(repr=False)
    most: int = 2

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[Mapping[str, str], IO[bytes]] | None]:
        """What is told of a layer, and its archive; None if it is not there or not ours."""
        try:
            file = self._place(name).open("rb")
        except OSError:
            yield None
            return
        with file:
            yield self._verified(file, name)

    def _verified(self, file: IO[bytes], name: str) -> tuple[Mapping[str, str], IO[bytes]] | None:
        with contextlib.suppress(OSError):
            if file.read(len(_MAGIC)) != _MAGIC:
                return None
            said = file.read(_SEAL_LENGTH)
            facts = file.readline(_MOST_FACTS)
            begin = file.tell()
            seal = self._seal(name, facts)
            while chunk := file.read(_CHUNK):
                seal.update(chunk)
            if hmac.compare_digest(seal.hexdigest().encode(), said):
                file.seek(begin)
                return said_of(facts), file
        return None

    def keep(self, name: str, facts: Mapping[str, str], archive: Iterable[bytes]) -> bool:
        """Keep a layer, whole or not at all. False where the disk does not take it."""
        line = json.dumps(dict(facts)).encode() + b"\n"
        seal = self._seal(name, line)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            opened, beside = tempfile.mkstemp(dir=self.folder, prefix=".layer-")
            try:
                with os.fdopen(opened, "wb") as file:
                    file.write(_MAGIC + b"0" * _SEAL_LENGTH + line)
                    for chunk in archive:
                        seal.update(chunk)
                        file.write(chunk)
                    file.seek(len(_MAGIC))
                    file.write(seal.hexdigest().encode())
                Path(beside).replace(self._place(name))
            except BaseException:
                Path(beside).unlink()
                raise
            self._forget_old()
        except OSError:
            return False
        return True

    def _seal(self, name: str, facts: bytes) -> hmac.HMAC:
        return hmac.new(self.secret, _MAGIC + name.encode() + b"\n" + facts, "sha256")

    def _place(self, name: str) -> Path:
        return self.folder / f"{name}.layer"

    def _forget_old(self) -> None:
        found = sorted(self.folder.glob("*.layer"), key=lambda path: path.stat().st_mtime_ns)
        for old in found[: -self.most]:
            old.unlink(missing_ok=True)
