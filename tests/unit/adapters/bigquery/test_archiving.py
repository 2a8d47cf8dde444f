"""What no emulator shows: BigQuery that fails, loses answers, is slow, or does half of it.

Whatever happens: what is right in the end, or one line that says what is wrong; never a row
twice; and an end within the time that was said.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstop.adapters.bigquery import BigQueryArchive, Pacing
from backstop.core.auditlog import ORIGIN, tip_at
from backstop.core.events import RunOpened
from backstop.core.reckoning import reckon
from backstop.errors import BackstopError
from tests.contract.archives.bench import appended_at_once, chained, held
from tests.unit.adapters.bigquery.faking import (
    CALLS,
    DOWN,
    PLACE,
    STORY,
    Desk,
    Ends,
    FakeBigQuery,
    Fault,
    Loses,
    Says,
    desk,
    slug,
)

NUMBERS = [one.seq for one in STORY]
LIMIT = Says(status=403, reason="rateLimitExceeded")
QUOTA = Says(status=403, reason="quotaExceeded")

FAULTS: list[Fault] = [DOWN, LIMIT, QUOTA, Loses(), Loses(half=True)]


def whole(it: Desk) -> None:
    """All is there once, and reads back."""
    assert it.stored == NUMBERS
    assert held(it.open()) == STORY


def test_the_first_append_makes_the_table_and_the_archive_reads_back() -> None:
    with desk() as it:
        archive = it.open()
        assert archive.head() == ORIGIN
        assert archive.append(STORY) == tip_at(STORY[-1])
        whole(it)
        assert it.fake.asked.count("make") == 1
        assert list(archive.days()) == reckon(STORY)
        assert archive.check() == tip_at(STORY[-1])


def test_of_four_that_append_the_same_at_once_one_job_brings_it() -> None:
    """The emulator cannot show this: it runs two jobs of one id that come at the same time."""
    with desk() as it:
        it.open().append([])
        assert appended_at_once(it.open, STORY) == []
        whole(it)


def test_results_come_page_by_page() -> None:
    with desk(FakeBigQuery(page=2)) as it:
        it.open().append(STORY)
        whole(it)
        assert it.fake.asked.count("page") == (len(STORY) - 1) // 2


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize(
    "fault",
    [
        DOWN,
        Says(status=500),
        Says(status=429),
        LIMIT,
        Says(status=502, body=b"<html>"),
        Loses(),
        Loses(half=True),
    ],
    ids=["503", "500", "429", "rate-limit", "html", "lost", "half-lost"],
)
def test_what_fails_once_is_asked_again_and_done_once(kind: str, fault: Fault) -> None:
    with desk(FakeBigQuery(page=4, endings=[Ends(runs=2)])) as it:
        it.fake.faults[kind] = [fault]
        assert it.open().append(STORY) == tip_at(STORY[-1])
        whole(it)
        assert it.fake.faults[kind] == []


@pytest.mark.parametrize("kind", [one for one in CALLS if one != "page"])
@pytest.mark.parametrize(
    ("fault", "said"),
    [(DOWN, "store-down"), (Loses(), "store-down"), (LIMIT, "store-full")],
    ids=["503", "lost", "rate-limit"],
)
def test_what_fails_always_ends_in_time_and_told_again_is_done_once(
    kind: str, fault: Fault, said: str
) -> None:
    with desk(FakeBigQuery(endings=[Ends(runs=2)])) as it:
        it.fake.faults[kind] = [fault] * 1000
        assert slug(lambda: it.open().append(STORY)) == said
        assert it.time.at <= 45
        it.fake.faults.clear()
        assert it.open().append(STORY) == tip_at(STORY[-1])
        whole(it)


@pytest.mark.parametrize("kind", [one for one in CALLS if one != "page"])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (QUOTA, "store-full"),
        (Says(status=403, reason="accessDenied"), "store-denied"),
        (Says(status=401, reason="authError"), "store-denied"),
        (Says(status=400, reason="invalid"), "store-refused"),
        (Says(status=301), "store-refused"),
    ],
    ids=["quota", "403", "401", "400", "redirect"],
)
def test_what_stands_is_said_at_once(kind: str, fault: Fault, said: str) -> None:
    with desk(FakeBigQuery(endings=[Ends(runs=2)])) as it:
        it.fake.faults[kind] = [fault]
        assert slug(lambda: it.open().append(STORY)) == said
        it.open().append(STORY)
        whole(it)


def test_a_batch_whose_answer_was_lost_is_not_brought_again_by_a_longer_one() -> None:
    """The id of a job is the end that it adds to, not what it brings."""
    with desk() as it:
        it.fake.faults["load"] = [Loses(), *[DOWN] * 1000]
        assert slug(lambda: it.open().append(STORY[:4])) == "store-down"
        assert it.stored == NUMBERS[:4]
        it.fake.faults.clear()
        it.open().append(STORY)
        whole(it)


def test_a_job_that_still_runs_is_looked_at_the_next_time_and_not_set_off_again() -> None:
    with desk(FakeBigQuery(endings=[Ends(runs=70)])) as it:
        assert slug(lambda: it.open().append(STORY[:4])) == "store-down"
        assert it.time.at <= 310
        assert it.stored == []
        it.open().append(STORY)
        whole(it)
        assert len(it.fake.jobs) == 2


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("invalid", "store-refused"),
        ("quotaExceeded", "store-full"),
        ("accessDenied", "store-denied"),
        ("notFound", "store-missing"),
    ],
)
def test_a_job_that_fails_for_good_says_why_and_does_not_stand_in_the_way(
    reason: str, said: str
) -> None:
    with desk(FakeBigQuery(endings=[Ends(reason=reason)])) as it:
        assert slug(lambda: it.open().append(STORY)) == said
        assert it.stored == []
        it.open().append(STORY)
        whole(it)


def test_a_job_that_fails_on_the_other_side_is_tried_anew_and_not_for_ever() -> None:
    failing = [Ends(reason="backendError")] * 6
    with desk(FakeBigQuery(endings=failing)) as it:
        assert slug(lambda: it.open().append(STORY)) == "store-down"
        assert len(it.fake.jobs) == 4
        it.open().append(STORY)
        whole(it)


def test_a_failed_job_of_which_rows_stayed_is_gone_on_from_and_not_repeated() -> None:
    with desk(FakeBigQuery(endings=[Ends(reason="backendError", kept=slice(3))])) as it:
        it.open().append(STORY)
        whole(it)


def test_a_job_that_took_in_the_beginning_and_says_nothing_is_gone_on_from() -> None:
    with desk(FakeBigQuery(endings=[Ends(kept=slice(3))])) as it:
        it.open().append(STORY)
        whole(it)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (slice(None, None, 2), "archive-gap"),
        (slice(1, None), "archive-gap"),
        (slice(0), "archive-rollback"),
    ],
)
def test_a_job_that_left_entries_out_is_never_taken_for_whole(kept: slice, said: str) -> None:
    with desk(FakeBigQuery(endings=[Ends(kept=kept)])) as it:
        assert slug(lambda: it.open().append(STORY)) == said
        assert slug(lambda: it.open().append(STORY)) == said


def test_rows_that_were_removed_are_missed_or_brought_again_and_never_twice() -> None:
    with desk() as it:
        it.open().append(STORY)
        del it.fake.rows[4:]
        it.open().append(STORY)
        whole(it)
        it.fake.rows.clear()
        assert slug(lambda: it.open().append(STORY)) == "archive-rollback"


def test_a_table_that_was_made_anew_is_filled_anew() -> None:
    with desk() as it:
        it.open().append(STORY)
        it.fake.rows.clear()
        it.fake.created += 1
        it.open().append(STORY)
        whole(it)


def test_somebody_else_who_added_the_same_is_recognised_and_others_are_refused() -> None:
    with desk() as it:
        one, other = it.open(), it.open()
        one.append(STORY[:2])
        other.append(STORY)
        one.append(STORY)
        whole(it)
        strange = chained([RunOpened(run="x", at="")], after=tip_at(STORY[3]))
        assert slug(lambda: one.append(strange)) == "archive-fork"
        whole(it)


def test_somebody_who_is_faster_is_found_out_by_the_id_of_the_job() -> None:
    """Both saw the same end; only one of the two jobs runs."""
    with desk() as it:
        strange = chained([RunOpened(run="x", at="")])
        it.fake.faults["load"] = [DOWN]
        sleep = it.time.sleep

        def overtaken(seconds: float) -> None:
            sleep(seconds)
            it.open().append(strange)

        archive = BigQueryArchive(
            place=PLACE,
            emulator=it.host,
            pacing=Pacing(sleep=overtaken, monotonic=lambda: it.time.at, chance=lambda: 0.5),
        )
        assert slug(lambda: archive.append(STORY)) == "archive-fork"
        assert it.stored == [1]


@pytest.mark.parametrize("what", ["more", "less", "type", "mode"])
def test_a_table_of_another_schema_is_refused_and_nothing_written(what: str) -> None:
    with desk() as it:
        it.open().append(())
        columns = it.fake.columns
        assert columns is not None
        match what:
            case "more":
                columns.append({"name": "x", "type": "STRING", "mode": "NULLABLE"})
            case "less":
                del columns[-1]
            case "type":
                columns[0]["type"] = "STRING"
            case _:
                columns[1]["mode"] = "NULLABLE"
        for ask in (it.open().head, lambda: it.open().append(STORY), lambda: [*it.open().read()]):
            assert slug(ask) == "store-schema"
        assert it.stored == []


def test_a_dataset_that_is_not_there_is_said_to_be_missing() -> None:
    with desk(FakeBigQuery(dataset=False)) as it:
        assert slug(lambda: it.open().append(STORY)) == "store-missing"


def test_a_table_that_is_not_there_is_no_empty_archive_for_who_may_not_make_one() -> None:
    with desk() as it:
        asked: list[Callable[[], object]] = [
            it.open(create=False).head,
            it.open(create=False).check,
            lambda: list(it.open(create=False).read()),
            lambda: list(it.open(create=False).days()),
        ]
        for ask in asked:
            assert slug(ask) == "store-missing"
        assert it.open().check() == ORIGIN
        assert list(it.open().days()) == []


class EveryJob(dict[str, Ends]):
    """Whatever the id, there is such a job, and it failed."""

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, _: str) -> Ends:
        return Ends(reason="invalid")


def test_an_end_at_which_all_jobs_failed_is_given_up_and_said() -> None:
    with desk(FakeBigQuery(jobs=EveryJob())) as it:
        assert slug(lambda: it.open().append(STORY)) == "store-refused"
        assert it.fake.asked.count("load") == 100


def test_a_table_that_is_made_and_removed_at_once_is_missing() -> None:
    with desk() as it:
        it.fake.faults["look"] = [Says(status=404, reason="notFound")] * 2
        assert slug(lambda: it.open().append(STORY)) == "store-missing"


def test_rows_beyond_the_size_of_a_job_go_in_several() -> None:
    """And one that is longer than a job should be goes alone."""
    sizes = [3_000_000] * 5 + [9_000_000, 10]
    long = [msgspec.Raw(msgspec.json.encode("x" * size)) for size in sizes]
    entries = chained([RunOpened(run=f"r{n}", at="", state=one) for n, one in enumerate(long)])
    with desk() as it:
        assert it.open().append(entries) == tip_at(entries[-1])
        assert it.fake.asked.count("load") == 5
        assert list(it.open().read()) == entries


@settings(max_examples=40)  # each is dozens of requests
@given(
    faults=st.lists(
        st.tuples(st.sampled_from(CALLS), st.sampled_from(FAULTS)),
        max_size=12,
    ),
    endings=st.lists(
        st.sampled_from(
            [
                Ends(),
                Ends(runs=2),
                Ends(reason="backendError"),
                Ends(reason="invalid"),
                Ends(kept=slice(2)),
                Ends(reason="invalid", kept=slice(1)),
            ]
        ),
        max_size=6,
    ),
    cuts=st.lists(st.integers(0, len(STORY)), max_size=4),
)
def test_whatever_happens_told_until_it_is_done_it_is_there_once(
    faults: list[tuple[str, Fault]], endings: list[Ends], cuts: list[int]
) -> None:
    with desk(FakeBigQuery(page=3, endings=endings)) as it:
        for kind, fault in faults:
            it.fake.faults.setdefault(kind, []).append(fault)
        ends = [*sorted(cuts), len(STORY)]
        for first, last in pairwise([0, *ends]):
            for _ in range(40):
                try:
                    it.open().append(STORY[first:last])
                    break
                except BackstopError as error:
                    if not error.slug.startswith("store-"):
                        raise
            else:
                pytest.fail("it does not come to an end")
        it.fake.faults.clear()
        whole(it)
