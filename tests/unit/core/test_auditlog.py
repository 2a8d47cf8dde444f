"""Entries of an archive, the pass over them, and the figures: values only."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from backstop.core.auditlog import ORIGIN, Entry, Sealed, day_of, entry_of, tip_at, unwritten
from backstop.core.auditwalk import (
    ArchiveMark,
    ended,
    hold_to_mark,
    note_of,
    open_mark,
    unarchived,
    write_mark,
)
from backstop.core.checkpoint import Usage
from backstop.core.events import (
    AttemptEnded,
    CallAnswered,
    CallBlocked,
    EffectCommitted,
    EffectResolved,
    Event,
    Header,
    Recovered,
    RunClosed,
    RunOpened,
    TrustBroken,
)
from backstop.core.meshlog import Ended, Rerun
from backstop.core.reckoning import Day, reckon, total
from backstop.core.sealing import encode, link
from backstop.errors import LedgerError
from tests.contract.archives.bench import archived, chained, story, walked
from tests.contract.bench import header

AT = "2026-03-02T06:00:00.000Z"
NOTE = Sealed(agent="clerk", events=0, tip="", digest="")


def ended_note(*, stopped: str = "", tokens: int = 7) -> Recovered:
    note = Ended(
        epoch=1,
        holder="h",
        spent=Usage(input_tokens=tokens),
        avoided=Usage(input_tokens=5),
        stopped=stopped,
    )
    return recovery(note)


def recovery(note: Ended | Rerun) -> Recovered:
    return Recovered(run="r", at=AT, body=msgspec.Raw(msgspec.json.encode(note)))


def slug(entries: list[Entry], *, mark: ArchiveMark | None = None) -> str:
    with pytest.raises(LedgerError) as caught:
        walked(entries, mark=mark).close()
    return caught.value.slug


@pytest.mark.parametrize(
    ("at", "day"),
    [
        ("2026-03-02T23:30:00.000Z", "2026-03-02"),
        ("2026-03-02T23:30:00-01:00", "2026-03-03"),
        ("2026-03-02T23:30:00", ""),
        ("0001-01-01T00:00:00+23:00", ""),
        ("soon", ""),
        ("", ""),
    ],
)
def test_a_day_is_that_of_utc_and_what_is_no_instant_has_none(at: str, day: str) -> None:
    assert day_of(at) == day


@pytest.mark.parametrize(
    ("said", "how"),
    [
        (CallAnswered(run="r", at=AT, step="s", tool="t", key="k", how="recorded"), "recorded"),
        (EffectResolved(run="r", at=AT, key="k", to="failed", by="p"), "failed"),
        (RunClosed(run="r", at=AT, status="complete"), "complete"),
        (AttemptEnded(run="r", at=AT, step="s", attempt=1, outcome="held"), "held"),
        (CallBlocked(run="r", at=AT, step="s", tool="t", key="k", by="armor"), "armor"),
        (recovery(Rerun(step="s", given="g", epoch=1, holder="h")), "rerun"),
        (ended_note(stopped="why"), "stopped"),
        (ended_note(), "ended"),
        (ended_note(tokens=-1), "unreadable"),
        (ended_note(tokens=2**60), "unreadable"),
        (Recovered(run="r", at=AT, body=msgspec.Raw(b"[]")), "unreadable"),
        (RunOpened(run="r", at=AT), ""),
        (header(), ""),
        (NOTE, ""),
    ],
)
def test_a_column_holds_the_word_that_an_event_decides_something_with(
    said: Event | Sealed, how: str
) -> None:
    entry = entry_of(said, msgspec.json.encode(said), after=ORIGIN)
    assert entry.how == how
    assert (entry.spent, entry.avoided) == ((7, 5) if how == "ended" else (0, 0))


def test_the_hash_covers_every_column_and_the_line_one_a_line_of_text() -> None:
    said = RunOpened(run="a\nb", at=AT)
    entry = entry_of(said, encode(said), after=ORIGIN)
    text = f"\n1\n2026-03-02\nrun_opened\n\na b\n{AT}\n\n\n0\n0\n".encode() + entry.line
    assert entry.hash == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("line", [b"\xff", b'{"a":1}\n'])
def test_what_is_not_one_line_of_text_is_not_archived(line: bytes) -> None:
    entry = entry_of(RunOpened(run="r", at=AT), line, after=ORIGIN)
    with pytest.raises(LedgerError) as caught:
        unwritten([entry], ORIGIN, lambda _first, _last: (), name="it")
    assert caught.value.slug == "archive-damaged"


def test_a_store_that_lost_what_it_says_it_has_is_a_gap() -> None:
    entries = story()
    with pytest.raises(LedgerError) as caught:
        unwritten(entries, tip_at(entries[3]), lambda _first, _last: entries[:2], name="it")
    assert caught.value.slug == "archive-gap"


def test_a_whole_archive_holds_and_its_mark_with_it() -> None:
    entries = story()
    walk = walked(entries)
    walk.close()
    assert (walk.agent, walk.tip, walk.events) == ("clerk", tip_at(entries[-1]), len(entries) - 2)
    again = walked(entries, mark=walk.mark())
    again.close()
    assert again.mark() == walk.mark()


@pytest.mark.parametrize("at", [0, 1, 5, -1])
def test_an_entry_that_is_lost_changed_moved_or_repeated_is_found(at: int) -> None:
    entries = story()
    one = entries[at]
    lost = [entry for entry in entries if entry is not one]
    assert slug(lost) == ("archive-unsealed" if at == -1 else "archive-gap")
    for change in ({"tool": "x"}, {"line": one.line + b" "}, {"prev": "f" * 64}, {"day": "x"}):
        changed = [msgspec.structs.replace(e, **change) if e is one else e for e in entries]
        assert slug(changed) == "archive-damaged"
    repeated = [entry for each in entries for entry in ([each, each] if each is one else [each])]
    assert slug(repeated) == "archive-damaged"


def test_what_is_no_line_of_ours_is_found() -> None:
    first = story()[0]
    assert slug([msgspec.structs.replace(first, line=b"{}")]) == "archive-damaged"


def test_an_archive_of_nothing_or_without_its_note_is_not_whole() -> None:
    assert slug([]) == "archive-empty"
    assert slug(story()[:-1]) == "archive-unsealed"


def test_events_before_a_header_and_out_of_their_run_are_found() -> None:
    opened = RunOpened(run="r", at=AT)
    assert slug(chained([opened])) == "archive-damaged"
    assert slug(chained([header(), msgspec.structs.replace(opened, prev="f" * 32)])) == (
        "archive-damaged"
    )


def test_a_note_of_another_ledger_is_found() -> None:
    entries = chained([header(), RunOpened(run="r", at=AT)])
    for events, tip in ((2, note_of(walked(entries), digest="", signature=None).tip), (1, "x")):
        note = Sealed(agent="clerk", events=events, tip=tip, digest="")
        assert slug(entries + chained([note], after=tip_at(entries[-1]))) == "archive-damaged"


def test_a_header_of_another_agent_is_foreign() -> None:
    assert slug(chained([header(), header(agent="else")])) == "archive-foreign"


@pytest.mark.parametrize(
    "mark",
    [
        ArchiveMark(agent="clerk", seq=3, hash="f" * 64),
        ArchiveMark(agent="clerk", seq=999, hash="f" * 64),
        ArchiveMark(agent="else", seq=3, hash="f" * 64),
    ],
)
def test_an_archive_that_is_not_the_one_that_was_seen_is_a_rollback(mark: ArchiveMark) -> None:
    assert slug(story(), mark=mark) == "archive-rollback"


def test_the_end_of_an_archive_that_was_checked_elsewhere_is_held_to_the_same() -> None:
    entries = story()
    assert ended(entries[-1], events=len(entries) - 2, name="it").agent == "clerk"
    for last, events, why in (
        (None, 0, "archive-empty"),
        (entries[-2], len(entries) - 3, "archive-unsealed"),
        (entries[-1], 3, "archive-damaged"),
    ):
        with pytest.raises(LedgerError) as caught:
            ended(last, events=events, name="it")
        assert caught.value.slug == why


def test_a_mark_that_was_kept_holds_the_entry_of_its_number() -> None:
    entries = story()
    mark = ArchiveMark(agent="clerk", seq=4, hash=entries[3].hash)
    hold_to_mark(entries[3], mark, name="it")
    for seen in (None, entries[4], msgspec.structs.replace(entries[3], hash="f" * 64)):
        with pytest.raises(LedgerError) as caught:
            hold_to_mark(seen, mark, name="it")
        assert caught.value.slug == "archive-rollback"


def test_a_mark_is_written_and_read_and_nothing_else_is_one() -> None:
    mark = ArchiveMark(agent="clerk", seq=4, hash="f" * 64)
    assert open_mark(write_mark(mark), name="m") == mark
    later = write_mark(msgspec.structs.replace(mark, format=2))
    for data in (b"", b"{}", b"\xff", write_mark(mark)[:-1], later):
        with pytest.raises(LedgerError) as caught:
            open_mark(data, name="m")
        assert caught.value.slug == "mark-damaged"


def test_each_run_goes_on_where_the_archive_has_it_end() -> None:
    told = [RunOpened(run=run, at=AT, user=str(n)) for n in range(3) for run in ("a", "b")]
    lines = [(encode(event), event) for event in told]
    heads = {"a": link(lines[2][0])}
    assert [event for _, event in unarchived(lines, heads)] == [told[1], told[3], told[4], told[5]]
    assert list(unarchived(lines, {})) == lines


def test_figures_count_what_is_on_record_and_nothing_else() -> None:
    def answered(how: str, at: str = AT) -> CallAnswered:
        return CallAnswered(run="r", at=at, step="s", tool="t", key="k", how=how)

    said: list[Header | Event | Sealed] = [
        header(),
        EffectCommitted(run="r", at=AT, key="k"),
        EffectResolved(run="r", at=AT, key="k", to="committed", by="p"),
        EffectResolved(run="r", at=AT, key="k", to="failed", by="p"),
        *(answered(how) for how in ("recorded", "held", "in_doubt", "conflict", "withheld")),
        answered("observed_recorded"),
        answered("recorded", at="soon"),
        TrustBroken(run="r", at="2026-03-03T00:00:00Z"),
        ended_note(),
        ended_note(stopped="why"),
        NOTE,
    ]
    days = reckon(chained(said))
    assert days == [
        Day(day="", events=1, repeats=1),
        Day(
            day="2026-03-02",
            events=11,
            effects=2,
            repeats=1,
            held=4,
            observed=1,
            recoveries=1,
            spent=7,
            avoided=5,
        ),
        Day(day="2026-03-03", events=1, breaks=1),
    ]
    assert total(days).events == 13
    assert total(days).repeats == 2
    assert reckon(archived([header()])) == []
