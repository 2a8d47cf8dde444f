"""A BigQuery of our own on the loopback: it speaks the few endpoints, as badly as a test wants it.

It holds one dataset and one table, keeps load jobs by their ids as the real one does, and knows
the answers to our own queries. What is on its list of `faults` for a kind of call happens to the
next such calls, in that order.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, TypeAlias

import msgspec
import pytest

from backstop.adapters.bigquery import BigQueryArchive, Pacing, Place
from backstop.adapters.bigquery.rows import COLUMNS
from backstop.core.auditlog import Entry, hash_of
from backstop.core.reckoning import FIGURES, reckon
from backstop.errors import BackstopError
from tests.contract.archives.bench import story
from tests.github.serving import Answer, Asked, serving

PLACE: Final = Place(project="p", dataset="d", table="t")
NAMES: Final = Entry.__struct_fields__
STORY: Final = story()
CALLS: Final = ("look", "make", "load", "job", "query", "page")
"""Kinds of calls: look for the table, make it, load, look at a job, ask a query, its next page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """It answers this, and does nothing."""

    status: int
    reason: str = ""
    message: str = "because"
    body: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loses:
    """It does what is asked, and the answer is lost on the way, or its second `half`."""

    half: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drips:
    """It does what is asked, and answers byte by byte, without end."""


Fault: TypeAlias = Says | Loses | Drips
DOWN: Final = Says(status=503, reason="backendError")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """How a load job ends, after it `runs` for so many looks: `reason` fails it.

    `kept` are the rows that go in whatever it says; None for what it says.
    """

    reason: str = ""
    kept: slice | None = None
    runs: int = 0


@dataclass(slots=True, kw_only=True)
class FakeBigQuery:
    """What it holds, what it was asked, and what goes wrong next."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    jobs: dict[str, Ends] = field(default_factory=dict)
    looks: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    dataset: bool = True
    columns: list[dict[str, str]] | None = None
    created: int = 1
    asked: list[str] = field(default_factory=list)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    endings: list[Ends] = field(default_factory=list)
    page: int = 1000
    pages: list[dict[str, Any]] = field(default_factory=list)
    tampered: Sequence[dict[str, Any]] | None = None
    """Pages of results that are told in place of those that are right, where rows are asked for."""
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: Asked) -> Answer:
        """What one request is answered."""
        with self.lock:
            kind = _kind(asked)
            self.asked.append(kind)
            due = self.faults.get(kind) or []
            fault = due.pop(0) if due else None
            if isinstance(fault, Says):
                return _said(fault)
            done = getattr(self, f"_{kind}")(asked)
            answer = _said(done) if isinstance(done, Says) else _told(done)
            match fault:
                case Loses(half=True):
                    return answer._replace(breaks_off=True)
                case Loses():
                    return Answer(0, {}, b"")
                case Drips():
                    return Answer(200, {}, b" " * 100_000, drips_until=self.ended)
                case None:
                    return answer

    def put(self, entries: Sequence[Entry]) -> None:
        """Make the table hold these entries."""
        self.columns = msgspec.to_builtins(COLUMNS)
        self.rows = [{**msgspec.structs.asdict(one), "line": one.line.decode()} for one in entries]

    def _look(self, _: Asked) -> object:
        if not self.dataset or self.columns is None:
            return Says(status=404, reason="notFound")
        schema = {"fields": self.columns}
        return {"creationTime": str(self.created), "location": "EU", "schema": schema}

    def _make(self, asked: Asked) -> object:
        if not self.dataset:
            return Says(status=404, reason="notFound", message="Not found: Dataset p:d")
        if self.columns is not None:
            return Says(status=409, reason="duplicate")
        self.columns = json.loads(asked.body)["schema"]["fields"]
        return {}

    def _load(self, asked: Asked) -> object:
        told, rows = _parts(asked)
        job = told["jobReference"]["jobId"]
        assert told["jobReference"]["location"] == "EU"
        if job in self.jobs:
            return Says(status=409, reason="duplicate", message=f"Already Exists: Job {job}")
        ends = self.endings.pop(0) if self.endings else Ends()
        self.jobs[job] = ends
        if not ends.runs:
            self._take_in(ends, rows)
        else:
            self.looks[job] = ends.runs
            self.waiting[job] = rows
        return self._status(job)

    def _job(self, asked: Asked) -> object:
        job = asked.path.rpartition("/")[2]
        assert asked.query["location"] == "EU"
        if self.looks.get(job):
            self.looks[job] -= 1
            if not self.looks[job]:
                self._take_in(self.jobs[job], self.waiting[job])
        return self._status(job)

    def _status(self, job: str) -> object:
        if self.looks.get(job):
            return {"status": {"state": "RUNNING"}}
        error = {"reason": self.jobs[job].reason, "message": "because"}
        failed = {"errorResult": error, "errors": [error]} if self.jobs[job].reason else {}
        return {"status": {"state": "DONE", **failed}}

    def _take_in(self, ends: Ends, rows: list[dict[str, Any]]) -> None:
        self.rows += rows[ends.kept or slice(0 if ends.reason else None)]

    def _query(self, asked: Asked) -> object:
        told = json.loads(asked.body)
        assert (told["useLegacySql"], told["useQueryCache"], told["location"]) == (
            False,
            False,
            "EU",
        )
        assert "`p.d.t`" in told["query"]
        rows = [{"f": [{"v": cell} for cell in row]} for row in self._results(told["query"])]
        cut = [rows[at : at + self.page] for at in range(0, len(rows), self.page)] or [[]]
        self.pages = [{"rows": each, "pageToken": str(at)} for at, each in enumerate(cut, 1)]
        del self.pages[-1]["pageToken"]
        if self.tampered is not None and "BETWEEN" in told["query"]:
            self.pages = list(self.tampered)
        return self._page(asked)

    def _page(self, asked: Asked) -> object:
        at = int(asked.query.get("pageToken", "0"))
        reference = {"jobId": "q", "location": "EU"}
        return {"jobComplete": True, "jobReference": reference, **self.pages[at]}

    def _results(self, sql: str) -> list[list[str | None]]:
        rows = sorted(self.rows, key=lambda row: int(row["seq"]))
        numbers = [int(row["seq"]) for row in rows]
        if found := re.search(r"BETWEEN (\d+) AND (\d+)", sql):
            first, last = map(int, found.groups())
            kept = [row for row in rows if first <= int(row["seq"]) <= last]
            return [[_cell(row[name]) for name in NAMES] for row in kept]
        if "MAX_BY" in sql:
            if not rows:
                return [["0", "0", None, None, None]]
            shape = (len(rows), len(set(numbers)), numbers[0], numbers[-1])
            return [[*map(str, shape), rows[-1]["hash"]]]
        if "LAG(" in sql:
            odd = [[str(b), str(a)] for a, b in pairwise([0, *numbers]) if b != a + 1]
            return [list(row) for row in odd[:1]]
        entries = [msgspec.convert({**row, "line": row["line"].encode()}, Entry) for row in rows]
        if "SHA256" in sql:
            before = {one.seq: one.hash for one in entries}
            wrong = [
                one
                for one in entries
                if one.hash != hash_of(one) or one.prev != before.get(one.seq - 1, "")
            ]
            return [[str(one.seq)] for one in wrong[:1]]
        return [
            [day.day, *(str(getattr(day, each)) for each in FIGURES)] for day in reckon(entries)
        ]


@dataclass(slots=True, kw_only=True)
class Time:
    """Time that passes only by waiting."""

    at: float = 0.0

    def sleep(self, seconds: float) -> None:
        """Pass it."""
        self.at += seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """An archive on a fake, the fake, and the time between them."""

    fake: FakeBigQuery
    time: Time
    host: str

    def open(self, *, create: bool = True, try_s: float = 20.0) -> BigQueryArchive:
        """The archive, as another process would open it."""
        pacing = Pacing(
            try_s=try_s,
            sleep=self.time.sleep,
            monotonic=lambda: self.time.at,
            chance=lambda: 0.5,
        )
        return BigQueryArchive(place=PLACE, create=create, emulator=self.host, pacing=pacing)

    @property
    def stored(self) -> list[int]:
        """The numbers of the rows, in the order in which they came."""
        return [int(row["seq"]) for row in self.fake.rows]


@contextmanager
def desk(fake: FakeBigQuery | None = None) -> Iterator[Desk]:
    """A fake that is served."""
    fake = fake or FakeBigQuery()
    with serving(fake.answer, "127.0.0.1") as url:
        yield Desk(fake=fake, time=Time(), host=url.removeprefix("http://"))
        fake.ended.set()


def slug(ask: Callable[[], object]) -> str:
    """The slug of the error that comes of asking, which is one line."""
    with pytest.raises(BackstopError) as caught:
        ask()
    assert "\n" not in str(caught.value)
    return caught.value.slug


def _kind(asked: Asked) -> str:
    if asked.path.startswith("/upload/"):
        return "load"
    kinds = {
        ("GET", "/tables/t"): "look",
        ("POST", "/tables"): "make",
        ("POST", "/queries"): "query",
    }
    found = next(
        (
            k
            for (m, end), k in kinds.items()
            if (asked.method, asked.path.endswith(end)) == (m, True)
        ),
        None,
    )
    return found or ("job" if "/jobs/" in asked.path else "page")


def _parts(asked: Asked) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    boundary = asked.headers["content-type"].partition("boundary=")[2]
    _, told, rows, end = asked.body.split(f"--{boundary}".encode())
    assert end.strip() == b"--"
    lines = rows.partition(b"\r\n\r\n")[2].splitlines()
    return json.loads(told.partition(b"\r\n\r\n")[2]), [json.loads(line) for line in lines if line]


def _cell(value: object) -> str | None:
    return None if value is None else str(value)


def _told(body: object) -> Answer:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    return Answer(200, headers, gzip.compress(json.dumps(body).encode()))


def _said(fault: Says) -> Answer:
    error = {"reason": fault.reason, "message": fault.message}
    told = {"error": {"code": fault.status, "message": fault.message, "errors": [error]}}
    body = json.dumps(told).encode() if fault.body is None else fault.body
    return Answer(fault.status, {"content-type": "application/json"}, body)
