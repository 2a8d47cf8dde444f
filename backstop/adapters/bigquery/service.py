"""What the audit asks of BigQuery, each told to its end: a table, load jobs, queries.

Whatever leaves open whether it was done is asked again, until the answer is definite or time is
up. That is safe for all of them: a table is made once, and a job has an id that is told with it,
so that the second time it is not run but looked at.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import random
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from backstop.adapters.bigquery.faults import (
    PASSING,
    Complaint,
    Fault,
    Meaning,
    fault_of_answer,
    fault_of_job,
)
from backstop.adapters.bigquery.wire import Reply, Request, Unanswered, Wire
from backstop.errors import BackstopError, ConfigError

_FIRST_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 10.0
_LOOK_S: Final = 0.1
_LONGEST_LOOK_S: Final = 5.0
_PAGE: Final = 10_000
"""Rows of a page at most; BigQuery ends one earlier where they are long."""

_PAGES: Final = 10_000
_SERVER_WAITS_MS: Final = 5_000
_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,1024}")
_FORMS: Final = {
    "project": re.compile(r"[a-z0-9][a-z0-9.:-]{0,127}"),
    "dataset": _NAME,
    "table": _NAME,
}
_BOUNDARY: Final = "a-line-of-json-does-not-begin-like-this"

Shape = TypeVar("Shape")
Row = list[str | None]
"""The cells of a row of results, as text; None for NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A table of BigQuery.

    Raises `ConfigError` (``archive-url``) for names that it does not have, or that need quoting.
    """

    project: str
    dataset: str
    table: str = "backstop"

    def __post_init__(self) -> None:
        names = {"project": self.project, "dataset": self.dataset, "table": self.table}
        for what, name in names.items():
            if not _FORMS[what].fullmatch(name):
                raise ConfigError(
                    f"{self}: {name!r} is no name of a {what}; write "
                    "bigquery://PROJECT/DATASET or bigquery://PROJECT/DATASET/TABLE",
                    slug="archive-url",
                )

    def __str__(self) -> str:
        return f"bigquery://{self.project}/{self.dataset}/{self.table}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """How long things may take, in seconds, and what tells time and chance.

    `call_s` is for one call with all its tries, `try_s` for one of them; `job_s` for a job that
    was taken on and runs, or a query.
    """

    call_s: float = 45.0
    try_s: float = 15.0
    job_s: float = 300.0
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a load job ended: after a `fault` none of its rows is kept.

    `fresh` says that this very call set it off; otherwise an earlier one did, or somebody else.
    """

    fault: Fault | None
    fresh: bool


class Table(msgspec.Struct, frozen=True, rename="camel"):
    """A table that is there: when it was made, where it lies, and its columns."""

    creation_time: str
    location: str
    schema: Schema


class Schema(msgspec.Struct, frozen=True):
    """The columns of a table, in order."""

    fields: tuple[Column, ...] = ()


class Column(msgspec.Struct, frozen=True):
    """One column, in the words of the API."""

    name: str
    type: str
    mode: str = "NULLABLE"


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    state: str
    error_result: Complaint | None = None


class _Job(msgspec.Struct, frozen=True):
    status: _Status


class _Reference(msgspec.Struct, frozen=True, rename="camel"):
    job_id: str
    location: str = ""


class _Cell(msgspec.Struct, frozen=True):
    v: str | None = None


class _Cells(msgspec.Struct, frozen=True):
    f: tuple[_Cell, ...]


class _Results(msgspec.Struct, frozen=True, rename="camel"):
    job_complete: bool
    job_reference: _Reference | None = None
    rows: tuple[_Cells, ...] = ()
    page_token: str | None = None


class Service:
    """BigQuery, for one table. Every method raises `BackstopError` (``store-...``)."""

    def __init__(self, *, place: Place, emulator: str | None, pacing: Pacing) -> None:
        self.name = f"{place}" + (f" at {emulator}" if emulator else "")
        self._place = place
        self._pacing = pacing
        self._wire = Wire(name=self.name, emulator=emulator, monotonic=pacing.monotonic)
        self._jobs = f"/bigquery/v2/projects/{quote(place.project, safe='')}"

    def close(self) -> None:
        """Let go of the connections."""
        self._wire.close()

    def table(self) -> Table | None:
        """The table, if it is there."""
        asked = Request(method="GET", path=f"{self._tables()}/{self._place.table}")
        answer = self._call(asked, expected=frozenset({Meaning.MISSING}))
        return None if isinstance(answer, Fault) else self._shaped(answer, Table)

    def make_table(self, columns: tuple[Column, ...], *, clustered: str) -> None:
        """Make the table, unless it is there by now."""
        told = {
            "tableReference": {
                "projectId": self._place.project,
                "datasetId": self._place.dataset,
                "tableId": self._place.table,
            },
            "schema": {"fields": columns},
            "clustering": {"fields": [clustered]},
        }
        asked = Request(method="POST", path=self._tables(), body=msgspec.json.encode(told))
        self._call(asked, expected=frozenset({Meaning.EXISTS}))

    def load(self, job: str, rows: bytes, columns: tuple[Column, ...], *, location: str) -> Ended:
        """Append rows, JSON lines, to the table by the job of this id, and wait for its end.

        If there is such a job already it is not run, and these rows go nowhere: what is told is
        how that job ended.
        """
        asked = Request(
            method="POST",
            path=f"/upload{self._jobs}/jobs",
            params={"uploadType": "multipart"},
            body=_upload(msgspec.json.encode(self._loading(job, columns, location)), rows),
            kind=f"multipart/related; boundary={_BOUNDARY}",
        )
        answer = self._call(asked, expected=frozenset({Meaning.EXISTS}))
        fresh = not isinstance(answer, Fault)
        look = Request(method="GET", path=f"{self._jobs}/jobs/{job}", params={"location": location})
        until, pause = self._pacing.monotonic() + self._pacing.job_s, _LOOK_S
        while True:
            if not isinstance(answer, Fault):
                status = self._shaped(answer, _Job).status
                if status.state == "DONE":
                    error = status.error_result
                    return Ended(fault=fault_of_job(error) if error else None, fresh=fresh)
            if self._pacing.monotonic() >= until:
                raise self._slow(f"job {job}")
            self._pacing.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK_S)
            answer = self._call(look)

    def query(self, sql: str, *, location: str) -> Iterator[Row]:
        """The rows that a query returns, in its order, page by page."""
        told = {
            "query": sql,
            "useLegacySql": False,
            # What it was before the last load is no answer.
            "useQueryCache": False,
            "location": location,
            "timeoutMs": _SERVER_WAITS_MS,
            "maxResults": _PAGE,
        }
        asked = Request(method="POST", path=f"{self._jobs}/queries", body=msgspec.json.encode(told))
        until = self._pacing.monotonic() + self._pacing.job_s
        seen = {""}
        while True:
            page = self._shaped(self._definite(asked), _Results)
            if page.job_complete:
                yield from ([cell.v for cell in row.f] for row in page.rows)
                until = self._pacing.monotonic() + self._pacing.job_s
                if not page.page_token:
                    return
                if page.page_token in seen or len(seen) > _PAGES:
                    raise self._odd("its pages of results come to no end")
                seen.add(page.page_token)
            elif self._pacing.monotonic() >= until:
                raise self._slow("a query")
            if page.job_reference is None:
                raise self._odd("it does not say where the rest of the results is")
            asked = self._next(page.job_reference, page.page_token, location)

    def pause(self, tried: int) -> None:
        """Wait before a job that failed on the other side is tried anew, for the n-th time."""
        self._pacing.sleep(self._backoff_s(tried))

    def error(self, fault: Fault) -> BackstopError:
        """The error for a fault that stands."""
        slug, remedy = {
            Meaning.AGAIN: ("store-down", "check the network and the service, then try again"),
            Meaning.LIMITED: ("store-full", "it takes no more so fast: try again later"),
            Meaning.FULL: ("store-full", "raise the quota, or wait until it renews"),
            Meaning.DENIED: (
                "store-denied",
                "give this account the roles bigquery.dataEditor and bigquery.jobUser",
            ),
            Meaning.MISSING: ("store-missing", "make the dataset, or name another"),
            Meaning.EXISTS: ("store-refused", "report it with this message"),
            Meaning.REFUSED: ("store-refused", "report it with this message"),
        }[fault.meaning]
        return BackstopError(f"{self.name} refused ({fault.said}); {remedy}", slug=slug)

    def _call(self, asked: Request, *, expected: frozenset[Meaning] = frozenset()) -> Reply | Fault:
        """The answer, or a fault of an `expected` kind. Asks again what may be asked again."""
        until, tried = self._pacing.monotonic() + self._pacing.call_s, 0
        while True:
            tried += 1
            left = max(0.001, until - self._pacing.monotonic())
            try:
                reply = self._wire.send(asked, within_s=min(self._pacing.try_s, left))
            except Unanswered as error:
                fault = Fault(meaning=Meaning.AGAIN, said=str(error))
            else:
                if reply.status in range(200, 300):
                    return reply
                fault = fault_of_answer(reply.status, reply.body)
            if fault.meaning in expected:
                return fault
            if fault.meaning not in PASSING:
                raise self.error(fault)
            pause = self._backoff_s(tried)
            if self._pacing.monotonic() + pause >= until:
                raise self._gave_up(fault)
            self._pacing.sleep(pause)

    def _definite(self, asked: Request) -> Reply:
        answer = self._call(asked)
        assert not isinstance(answer, Fault)  # noqa: S101 - none is expected
        return answer

    def _backoff_s(self, tried: int) -> float:
        whole = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(tried - 1, 10))
        return whole * (0.5 + self._pacing.chance() / 2)

    def _gave_up(self, fault: Fault) -> BackstopError:
        if fault.meaning is Meaning.LIMITED:
            return self.error(fault)
        return BackstopError(
            f"{self.name} did not answer within {self._pacing.call_s:g} s ({fault.said}); check "
            "the network and the service, then try again",
            slug="store-down",
        )

    def _slow(self, what: str) -> BackstopError:
        return BackstopError(
            f"{self.name}: {what} still runs after {self._pacing.job_s:g} s; try again later: "
            "what was taken on is looked at then, and not done twice",
            slug="store-down",
        )

    def _odd(self, what: str) -> BackstopError:
        return BackstopError(
            f"{self.name}: an answer that BigQuery does not give: {what}; is this BigQuery "
            "(BIGQUERY_EMULATOR_HOST)?",
            slug="store-refused",
        )

    def _shaped(self, answer: Reply, shape: type[Shape]) -> Shape:
        try:
            return msgspec.json.decode(answer.body, type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._odd(str(error)) from None

    def _tables(self) -> str:
        return f"{self._jobs}/datasets/{self._place.dataset}/tables"

    def _loading(
        self, job: str, columns: tuple[Column, ...], location: str
    ) -> Mapping[str, object]:
        return {
            "jobReference": {
                "projectId": self._place.project,
                "jobId": job,
                "location": location,
            },
            "configuration": {
                "load": {
                    "destinationTable": {
                        "projectId": self._place.project,
                        "datasetId": self._place.dataset,
                        "tableId": self._place.table,
                    },
                    "schema": {"fields": columns},
                    "sourceFormat": "NEWLINE_DELIMITED_JSON",
                    "writeDisposition": "WRITE_APPEND",
                    "createDisposition": "CREATE_NEVER",
                    # All of them or none.
                    "maxBadRecords": 0,
                    "ignoreUnknownValues": False,
                }
            },
        }

    def _next(self, job: _Reference, token: str | None, location: str) -> Request:
        params = {
            "location": job.location or location,
            "maxResults": str(_PAGE),
            "timeoutMs": str(_SERVER_WAITS_MS),
        }
        return Request(
            method="GET",
            path=f"{self._jobs}/queries/{quote(job.job_id, safe='')}",
            params={**params, "pageToken": token} if token else params,
        )


def _upload(told: bytes, rows: bytes) -> bytes:
    """The two parts of an upload. JSON holds no bare line break, so the boundary is in neither."""
    edge = f"--{_BOUNDARY}".encode()
    return b"\r\n".join(
        (
            edge,
            b"Content-Type: application/json; charset=UTF-8",
            b"",
            told,
            edge,
            b"Content-Type: application/octet-stream",
            b"",
            rows,
            edge + b"--",
            b"",
        )
    )
