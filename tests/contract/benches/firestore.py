"""The shared store, on the emulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from backstop.adapters.firestore import FirestoreStore, Options
from backstop.adapters.firestore.messages import Document, Range, Write
from backstop.adapters.firestore.wire import Begun, Database, Lost, Patience, Written
from backstop.adapters.stamps import micros
from backstop.clock import SystemClock
from backstop.core.events import Header
from tests.contract.bench import AGENT, Bench, Owners, SteppingClock, header
from tests.emulators import firestore, fresh_name

MARKS: tuple[pytest.MarkDecorator, ...] = (pytest.mark.emulator,)


def late(jumps: list[tuple[int, int]]) -> type[Database]:
    """A database whose server's time jumps: at each such instant, by so many microseconds."""

    def told(instant: int) -> int:
        return instant + sum(by for at, by in jumps if instant > at)

    def shifted(found: Document) -> Document:
        return replace(
            found,
            created=told(found.created),
            updated=told(found.updated),
            read=told(found.read),
        )

    class Late(Database):
        def commit(
            self, writes: Sequence[Write], patience: Patience, *, transaction: bytes = b""
        ) -> Written | Lost:
            done = super().commit(writes, patience, transaction=transaction)
            return done if isinstance(done, Lost) else replace(done, at=told(done.at))

        def begin(
            self, paths: Sequence[str], patience: Patience, *, only: Sequence[str] = ()
        ) -> Begun:
            begun = super().begin(paths, patience, only=only)
            found = [each and shifted(each) for each in begun.documents]
            return replace(begun, documents=found, read=told(begun.read))

        def get(
            self, paths: Sequence[str], patience: Patience, *, only: Sequence[str] = ()
        ) -> list[Document | None]:
            found = super().get(paths, patience, only=only)
            return [each and shifted(each) for each in found]

        def query(self, *ranges: Range, patience_s: float | None = None) -> Iterator[Document]:
            return map(shifted, super().query(*ranges, patience_s=patience_s))

    return Late


@contextmanager
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    host, collection = firestore(), fresh_name()
    owners, clock = Owners(), SteppingClock()
    jumps: list[tuple[int, int]] = []
    opened: list[FirestoreStore] = []

    def reopen(registered: Header | None) -> FirestoreStore:
        store = FirestoreStore(
            project="p",
            database="(default)",
            collection=collection,
            agent=AGENT,
            header=registered,
            clock=clock,
            emulator=host,
            # Patient, since the machines that test are busy.
            options=Options(is_alive=owners.is_alive, reached=late(jumps), patience_s=30),
        )
        opened.append(store)
        return store

    def wait(seconds: float) -> None:
        jumps.append((micros(SystemClock().now()), int(seconds * 1_000_000)))

    yield Bench(
        store=reopen(header()),
        clock=clock,
        kill=owners.kill,
        hide=owners.hide,
        wait=wait,
        reopen=reopen,
    )
    for each in opened:
        each.close()
