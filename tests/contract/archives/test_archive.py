"""What every archive promises, whichever it is: `benches` holds a module for each."""

from __future__ import annotations

import msgspec
import pytest

from backstop.auditports import Reckoner
from backstop.core.auditlog import ORIGIN, Entry, hash_of, tip_at
from backstop.core.events import NOTHING, CallAnswered, RunOpened
from backstop.core.reckoning import reckon
from backstop.errors import BackstopError, LedgerError
from tests.contract.archives.bench import ArchiveBench, appended_at_once, chained, held, story


def test_a_new_archive_holds_nothing_and_says_so(place: ArchiveBench) -> None:
    assert (place.archive.head(), list(place.archive.read())) == (ORIGIN, [])


def test_what_was_appended_is_read_back_as_it_was(place: ArchiveBench) -> None:
    entries = story()
    assert place.archive.append(entries) == tip_at(entries[-1])
    assert held(place.archive) == entries
    assert place.archive.head() == tip_at(entries[-1])


def test_it_is_read_from_behind_a_number(place: ArchiveBench) -> None:
    entries = story()
    place.archive.append(entries)
    assert list(place.archive.read(4)) == entries[4:]
    assert list(place.archive.read(len(entries))) == []


def test_it_grows_by_what_follows(place: ArchiveBench) -> None:
    entries = story()
    for first, end in ((0, 1), (1, 2), (2, len(entries))):
        place.archive.append(entries[first:end])
    assert held(place.archive) == entries


def test_told_again_it_changes_nothing(place: ArchiveBench) -> None:
    entries = story()
    place.archive.append(entries[:6])
    place.archive.append(entries[:6])
    place.archive.append(entries[2:5])
    place.archive.append(entries[3:])
    assert place.archive.append(()) == tip_at(entries[-1])
    assert held(place.archive) == entries


def test_entries_behind_a_gap_are_refused(place: ArchiveBench) -> None:
    entries = story()
    place.archive.append(entries[:3])
    assert _slug(place, entries[4:]) == "archive-gap"
    assert list(place.archive.read()) == entries[:3]


def test_other_entries_under_known_numbers_are_refused(place: ArchiveBench) -> None:
    entries, others = story(), chained([_opened("other") for _ in range(3)])
    place.archive.append(entries[:3])
    assert _slug(place, others) == "archive-fork"
    assert _slug(place, [*entries[:2], *chained([_opened("x")], after=tip_at(entries[1]))]) == (
        "archive-fork"
    )
    assert list(place.archive.read()) == entries[:3]


def test_entries_that_follow_another_past_are_refused(place: ArchiveBench) -> None:
    entries, others = story(), chained([_opened("other") for _ in range(5)])
    place.archive.append(entries[:3])
    assert _slug(place, others[3:]) == "archive-fork"
    assert list(place.archive.read()) == entries[:3]


@pytest.mark.parametrize("how", ["hash", "prev", "order", "begin"])
def test_entries_that_are_no_chain_are_refused(place: ArchiveBench, how: str) -> None:
    entries = story()[:3]
    match how:
        case "hash":
            entries[1] = msgspec.structs.replace(entries[1], tool="else")
        case "prev":
            entries[1] = _rehashed(msgspec.structs.replace(entries[1], prev="f" * 64))
        case "order":
            entries[1:] = [entries[2], entries[1]]
        case _:
            entries = [_rehashed(msgspec.structs.replace(entries[0], prev="f" * 64))]
    assert _slug(place, entries) == "archive-damaged"
    assert place.archive.head() == ORIGIN


def test_another_process_finds_what_was_appended_and_goes_on(place: ArchiveBench) -> None:
    entries = story()
    place.archive.append(entries[:5])
    place.archive.close()
    again = place.reopen()
    assert again.head() == tip_at(entries[4])
    again.append(entries[5:])
    assert held(place.reopen()) == entries


def test_long_lines_and_strange_names_are_kept_to_the_byte(place: ArchiveBench) -> None:
    names = ["a\nb", "\u0000", "é\u2028'\"\\", "佐藤" * 400, " "]
    long = _opened("long", state=msgspec.Raw(msgspec.json.encode("x'é" * 400_000)))
    entries = chained([*map(_opened, names), long])
    place.archive.append(entries)
    assert list(place.archive.read()) == entries
    assert place.archive.append(entries) == tip_at(entries[-1])


def test_two_that_append_the_same_at_once_leave_it_once(place: ArchiveBench) -> None:
    entries = story()
    assert appended_at_once(place.reopen, entries) == []
    assert held(place.reopen()) == entries


def test_one_that_cannot_be_reached_is_never_told_as_empty(place: ArchiveBench) -> None:
    if place.down is None:
        return  # what lives in this process is there as long as it
    entries = story()
    place.archive.append(entries)
    place.archive.close()
    place.down()
    for ask in (
        lambda: place.reopen().head(),
        lambda: list(place.reopen().read()),
        lambda: place.reopen().append(entries),
    ):
        with pytest.raises(BackstopError) as caught:
            ask()
        assert caught.value.slug.startswith("store-")


def test_figures_worked_out_where_it_lies_are_those_of_the_pure_reckoning(
    place: ArchiveBench,
) -> None:
    entries = story()
    odd = [
        CallAnswered(run="r3", at="", step="s", tool="pay", key="k", how="observed_recorded"),
        CallAnswered(
            run="r3", at="1970-01-01T00:30:00+02:00", step="s", tool="t", key="k", how="x"
        ),
    ]
    entries += chained([_opened("r3"), *odd], after=tip_at(entries[-1]))
    place.archive.append(entries)
    if isinstance(place.archive, Reckoner):
        assert list(place.archive.days()) == reckon(entries)
        assert place.archive.check() == tip_at(entries[-1])
    assert reckon(place.archive.read()) == reckon(entries)


def _slug(place: ArchiveBench, entries: list[Entry]) -> str:
    with pytest.raises(LedgerError) as caught:
        place.archive.append(entries)
    return caught.value.slug


def _opened(run: str, state: msgspec.Raw = NOTHING) -> RunOpened:
    return RunOpened(run=run, at="2026-03-02T06:00:00.000Z", state=state)


def _rehashed(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, hash=hash_of(entry))
