"""The reference archive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from backstop.adapters.archives.memory import MemoryArchive
from backstop.core.auditlog import Entry
from tests.contract.archives.bench import ArchiveBench

MARKS: tuple[pytest.MarkDecorator, ...] = ()


@contextmanager
def bench(request: pytest.FixtureRequest) -> Iterator[ArchiveBench]:
    archive = MemoryArchive()

    def put(entries: Sequence[Entry]) -> None:
        archive._entries[:] = entries  # noqa: SLF001 - there is no other way behind its back

    yield ArchiveBench(archive=archive, reopen=lambda: archive, put=put, down=None)
