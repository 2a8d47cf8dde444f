"""The archive in BigQuery, on the emulator."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import ClassVar
from urllib.request import Request, urlopen

import msgspec
import pytest

from backstop.adapters.bigquery import BigQueryArchive, Pacing, Place
from backstop.adapters.bigquery.rows import COLUMNS
from backstop.adapters.bigquery.service import Service
from backstop.core.auditlog import Entry, Tip
from tests.contract.archives.bench import ArchiveBench
from tests.emulators import bigquery, fresh_name

MARKS: tuple[pytest.MarkDecorator, ...] = (pytest.mark.bigquery,)

NOWHERE = "127.0.0.1:9"
PATIENT = Pacing(call_s=120, try_s=60)
"""The machines that test are busy."""


def call(host: str, method: str, path: str, body: object = None) -> None:
    """One call to the emulator, past everything that is tested."""
    data = None if body is None else json.dumps(body).encode()
    asked = Request(
        f"http://{host}/bigquery/v2/projects/local/{path}",
        data=data,
        method=method,
        headers={"content-type": "application/json"},
    )
    urlopen(asked, timeout=60).close()  # noqa: S310 - the emulator


def new_place(host: str) -> Place:
    """A place in a dataset of its own."""
    dataset = fresh_name("d").replace("-", "_")
    call(host, "POST", "datasets", {"datasetReference": {"datasetId": dataset}})
    return Place(project="local", dataset=dataset, table="ledger")


def put(host: str, place: Place, entries: Sequence[Entry]) -> None:
    """Make the table hold these entries, whatever it held."""
    service = Service(place=place, emulator=host, pacing=PATIENT)
    if service.table() is not None:
        call(host, "DELETE", f"datasets/{place.dataset}/tables/{place.table}")
    service.make_table(COLUMNS, clustered="seq")
    told = [
        {**msgspec.structs.asdict(one), "line": one.line.decode("utf-8", "replace")}
        for one in entries
    ]
    if told:
        rows = b"".join(msgspec.json.encode(one) + b"\n" for one in told)
        ended = service.load(fresh_name("put"), rows, COLUMNS, location="US")
        assert ended.fault is None, ended.fault
    service.close()


class InTurn(BigQueryArchive):
    """One that appends when nobody else does: the emulator runs two jobs of one id at once.

    BigQuery takes an id once; so does the scripted one, where several append at the same time.
    """

    TURN: ClassVar = Lock()

    def append(self, entries: Sequence[Entry]) -> Tip:
        with self.TURN:
            return super().append(entries)


@contextmanager
def bench(request: pytest.FixtureRequest) -> Iterator[ArchiveBench]:
    hosts = [bigquery()]
    place = new_place(hosts[0])
    # The emulator does not make a table in one go: two that ask for it at once break it.
    put(hosts[0], place, [])
    opened: list[BigQueryArchive] = []

    def reopen() -> BigQueryArchive:
        impatient = Pacing(call_s=0.01)
        pacing = PATIENT if hosts[-1] != NOWHERE else impatient
        opened.append(InTurn(place=place, emulator=hosts[-1], pacing=pacing))
        return opened[-1]

    yield ArchiveBench(
        archive=reopen(),
        reopen=reopen,
        put=lambda entries: put(hosts[0], place, entries),
        down=lambda: hosts.append(NOWHERE),
    )
    for each in opened:
        each.close()
