"""What BigQuery tells of an archive, where it lies, and where somebody changed the table."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from backstop.adapters.bigquery import BigQueryArchive, Pacing
from backstop.core.auditlog import Entry, tip_at
from tests.contract.archives.bench import held
from tests.unit.adapters.bigquery.faking import PLACE, STORY, Drips, Fault, Says, desk, slug


@pytest.mark.parametrize("kind", ["look", "query"])
def test_a_server_that_drips_is_given_up_in_time(kind: str) -> None:
    """A bounded wait for the whole answer, not for each byte of it."""
    with desk() as it:
        it.open().append(STORY)
        it.fake.faults[kind] = [Drips()] * 100
        ticks = iter(range(1_000_000))
        archive = BigQueryArchive(
            place=PLACE,
            emulator=it.host,
            # Each look at the clock is a second later: nobody has to wait.
            pacing=Pacing(sleep=it.time.sleep, monotonic=lambda: float(next(ticks)), try_s=1),
        )
        assert slug(archive.head) == "store-down"


def test_nobody_at_the_address_is_down_and_never_empty() -> None:
    with desk() as it:
        it.open().append(STORY)
    for ask in (it.open().head, it.open().check, lambda: list(it.open().read())):
        assert slug(ask) == "store-down"


def damage(row: dict[str, object]) -> dict[str, object]:
    return {**row, "tool": "else"}


@pytest.mark.parametrize(
    ("change", "head", "check"),
    [
        (lambda rows: [*rows, rows[3]], "archive-damaged", "archive-damaged"),
        (lambda rows: [*rows[:3], *rows[4:]], "archive-gap", "archive-gap"),
        (lambda rows: rows[2:], "archive-gap", "archive-gap"),
        (lambda rows: [*rows, {**rows[0], "seq": 0}], "archive-damaged", "archive-damaged"),
        (lambda rows: [*rows[:3], damage(rows[3]), *rows[4:]], None, "archive-damaged"),
        (
            lambda rows: [*rows[:3], {**rows[3], "prev": "f" * 64}, *rows[4:]],
            None,
            "archive-damaged",
        ),
    ],
    ids=["twice", "gap", "beginning", "zero", "edited", "link"],
)
def test_what_was_done_to_the_table_shows_in_sql(
    change: Callable[[list[dict[str, object]]], list[dict[str, object]]],
    head: str | None,
    check: str,
) -> None:
    with desk() as it:
        it.open().append(STORY)
        it.fake.rows = change(it.fake.rows)
        assert slug(it.open().check) == check
        if head is None:
            assert it.open().head() == tip_at(STORY[-1])
            assert slug(lambda: held(it.open())) == "archive-damaged"
        else:
            assert slug(it.open().head) == head
            assert slug(lambda: list(it.open().read())) == head
            assert slug(lambda: it.open().append(STORY)) == head


def cells(entry: Entry) -> dict[str, object]:
    values = {**msgspec.structs.asdict(entry), "line": entry.line.decode()}
    return {"f": [{"v": str(value)} for value in values.values()]}


ROWS = [cells(one) for one in STORY]


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ([{"rows": ROWS[:3], "pageToken": "1"}, {"rows": [], "pageToken": "1"}], "store-refused"),
        ([{"rows": ROWS[:3], "pageToken": "0"}], "archive-damaged"),
        ([{"rows": ROWS[:3]}], "archive-gap"),
        ([{"rows": []}], "archive-gap"),
        ([{"rows": [*ROWS[:3], *ROWS[2:]]}], "archive-damaged"),
        ([{"rows": [*ROWS[:3], *ROWS[4:]]}], "archive-gap"),
        ([{"rows": [ROWS[1], ROWS[0], *ROWS[2:]]}], "archive-gap"),
        ([{"rows": [{"f": [{"v": None}] * 13}]}], "archive-damaged"),
        ([{"rows": [{"f": ROWS[0]["f"][:5]}]}], "archive-damaged"),  # type: ignore[index]
        ([{"rows": [{"f": [{"v": ["x"]}]}]}], "store-refused"),
        ([{"rows": "none"}], "store-refused"),
        ([{"rows": ROWS[:3], "pageToken": "1", "jobReference": None}], "store-refused"),
        ([{"jobComplete": False, "jobReference": None}], "store-refused"),
    ],
    ids=[
        "token-again",
        "page-again",
        "page-lost",
        "nothing",
        "row-twice",
        "row-lost",
        "swapped",
        "nulls",
        "short",
        "shape",
        "no-rows",
        "no-job",
        "no-job-yet",
    ],
)
def test_results_that_are_not_what_was_asked_for_are_never_taken_for_whole(
    pages: list[dict[str, object]], said: str
) -> None:
    with desk() as it:
        it.open().append(STORY)
        it.fake.tampered = pages
        assert slug(lambda: list(it.open().read())) == said


def test_a_query_that_never_ends_is_given_up_in_time() -> None:
    with desk() as it:
        it.open().append(STORY)
        it.fake.tampered = [{"jobComplete": False}]
        ticks = iter(range(1_000_000))
        archive = BigQueryArchive(
            place=PLACE,
            emulator=it.host,
            pacing=Pacing(monotonic=lambda: float(next(ticks))),
        )
        assert slug(lambda: list(archive.read())) == "store-down"
        assert next(ticks) < 1000


def results(*rows: list[str | None]) -> Says:
    """An answer to any question."""
    told = [{"f": [{"v": cell} for cell in row]} for row in rows]
    return Says(status=200, body=msgspec.json.encode({"jobComplete": True, "rows": told}))


@pytest.mark.parametrize(
    "answers",
    [
        [results()],
        [results(["1", "1", "1", "1", "h"], ["1", "1", "1", "1", "h"])],
        [results(["1"])],
        [results(["one", "1", "1", "1", "h"])],
        [results(["2", "1", "1", "1", "h"]), results()],
        [results(["2", "1", "1", "1", "h"]), results(["x", None])],
        [results(["1", "1", "1", "1", "h"]), results([])],
        [results(["1", "1", "1", "1", "h"]), results(["x"])],
    ],
)
def test_an_answer_of_another_shape_than_the_question_s_is_refused(answers: list[Fault]) -> None:
    with desk() as it:
        it.open().append(STORY)
        it.fake.faults["query"] = answers
        assert slug(it.open().check) == "store-refused"


@pytest.mark.parametrize("row", [["2026-01-01"], ["2026-01-01", *["x"] * 9]])
def test_figures_of_another_shape_are_refused(row: list[str | None]) -> None:
    with desk() as it:
        it.open().append(STORY)
        it.fake.faults["query"] = [results(row)]
        assert slug(lambda: list(it.open().days())) == "store-refused"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"jobComplete": 3}', b"\xff"])
def test_an_answer_that_is_none_of_bigquery_s_is_refused(body: bytes) -> None:
    with desk() as it:
        it.open().append(STORY)
        it.fake.faults["query"] = [Says(status=200, body=body)]
        assert slug(it.open().head) == "store-refused"
