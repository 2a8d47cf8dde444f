"""On the emulator: the table, and the questions of docs/bigquery.md, which must come out right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest

from backstop.adapters.bigquery import BigQueryArchive, Place
from backstop.adapters.bigquery.rows import COLUMNS
from backstop.adapters.bigquery.service import Row, Service
from backstop.core.auditlog import Entry, Tip, tip_at
from backstop.core.checkpoint import Usage
from backstop.core.events import Recovered, TrustBroken
from backstop.core.meshlog import Ended
from backstop.core.reckoning import Day, reckon
from backstop.errors import BackstopError
from tests.architecture.source import ROOT
from tests.contract.archives.bench import chained, story
from tests.contract.archives.benches.bigquery import PATIENT, call, new_place, put
from tests.emulators import bigquery

pytestmark = pytest.mark.bigquery

PAGE = (ROOT / "docs" / "bigquery.md").read_text(encoding="utf-8")
EFFECTS, REPEATS, BREAKS, TOKENS, GAPS, CHANGED = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


def told() -> list[Entry]:
    """A story with a break of trust, and a recovery that came to its end the next day."""
    entries = story()
    receipt = Ended(
        epoch=1, holder="ann", spent=Usage(input_tokens=402), avoided=Usage(input_tokens=1379)
    )
    stopped = msgspec.structs.replace(receipt, stopped="no more")
    entries += chained(
        [
            TrustBroken(run="r1", at="2026-03-04T23:30:00-02:00", body=msgspec.Raw(b"{}")),
            *(
                Recovered(run="r1", at="2026-03-05T10:00:00Z", body=msgspec.Raw(body))
                for body in map(msgspec.json.encode, (stopped, receipt))
            ),
        ],
        after=tip_at(entries[-1]),
    )
    return entries


@pytest.fixture(scope="module")
def host() -> str:
    return bigquery()


@pytest.fixture(scope="module")
def place(host: str) -> Place:
    """A table that holds what is `told`, made by the archive itself."""
    place = new_place(host)
    archive = BigQueryArchive(place=place, emulator=host, pacing=PATIENT)
    assert archive.head() == Tip()
    archive.append(told())
    archive.close()
    return place


@pytest.fixture
def archive(host: str, place: Place) -> Iterator[BigQueryArchive]:
    archive = BigQueryArchive(place=place, create=False, emulator=host, pacing=PATIENT)
    yield archive
    archive.close()


def ask(host: str, place: Place, sql: str) -> list[Row]:
    service = Service(place=place, emulator=host, pacing=PATIENT)
    table = f"{place.project}.{place.dataset}.{place.table}"
    try:
        return list(service.query(sql.replace("PROJECT.DATASET.backstop", table), location="US"))
    finally:
        service.close()


def figures(*names: str) -> list[list[str]]:
    """The days of the pure reckoning on which one of these figures is not 0, with the figures."""

    def row(day: Day) -> list[str]:
        return [day.day, *(str(getattr(day, name)) for name in names)]

    return [row(day) for day in reckon(told()) if any(getattr(day, name) for name in names)]


def test_a_new_process_takes_the_table_that_the_first_one_made(archive: BigQueryArchive) -> None:
    assert list(archive.read()) == told()
    assert archive.check() == tip_at(told()[-1])


def test_the_days_are_those_of_the_pure_reckoning(archive: BigQueryArchive) -> None:
    assert list(archive.days()) == reckon(told())


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        (EFFECTS, ("effects",)),
        (REPEATS, ("repeats",)),
        (BREAKS, ("breaks",)),
        (TOKENS, ("spent", "avoided")),
    ],
    ids=["effects", "repeats", "breaks", "tokens"],
)
def test_each_question_of_the_docs_is_answered_as_the_pure_reckoning_does(
    host: str, place: Place, sql: str, names: tuple[str, ...]
) -> None:
    expected = figures(*names)
    assert expected
    assert ask(host, place, sql) == expected


def test_gaps_and_changes_show_in_the_queries_of_the_docs(host: str, place: Place) -> None:
    assert ask(host, place, GAPS) == ask(host, place, CHANGED) == []
    other, entries = replace(place, table="damaged"), told()
    edited = msgspec.structs.replace(entries[5], tool="else")
    put(host, other, [*entries[:3], *entries[4:5], edited, *entries[6:], entries[7]])
    assert ask(host, other, GAPS) == [["5", "3"], ["8", "8"]]
    assert sorted({row[0] or "" for row in ask(host, other, CHANGED)}) == ["5", "6"]


def test_a_table_of_another_schema_is_refused(host: str, place: Place) -> None:
    columns = [msgspec.to_builtins(one) for one in COLUMNS]
    columns[3]["type"] = "DATE"
    reference = {"projectId": "local", "datasetId": place.dataset, "tableId": "other"}
    body = {"tableReference": reference, "schema": {"fields": columns}}
    call(host, "POST", f"datasets/{place.dataset}/tables", body)
    archive = BigQueryArchive(place=replace(place, table="other"), emulator=host, pacing=PATIENT)
    with pytest.raises(BackstopError) as caught:
        archive.append(story())
    assert caught.value.slug == "store-schema"
    archive.close()
