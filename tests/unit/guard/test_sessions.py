"""Runs without a driver: names, places, and a cursor that passes nothing open."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import (
    AttemptEnded,
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    Event,
    RunOpened,
    StepStarted,
)
from backstop.errors import BackstopError
from backstop.guard.journal import Journal, as_sent
from backstop.guard.plugin.sessions import Message, Sessions, run_name


class Noon:
    """It is always noon."""

    def now(self) -> datetime:
        return datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def journal(store: MemoryStore) -> Journal:
    return Journal(
        store=store,
        namespace=Namespace(agent="desk"),
        declarations={"pay": Declaration(tool="pay")},
        version="v1",
        owner="w",
    )


def message(text: str, *, turn: str = "e1", **more: Any) -> Message:
    content = as_sent({"role": "user", "parts": [{"text": text}]})
    said = {"app": "desk", "user": "u", "session": "c1", "state": {}, **more}
    return Message(invocation=turn, content=content, **said)


def rows(store: MemoryStore, kind: type[Event]) -> list[Any]:
    return [event for event in store.read() if isinstance(event, kind)]


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("desk", "u", "c1"), "desk:u:c1"),
        (("desk", "ann@shop.se", "7"), "desk:ann@shop.se:7"),
        (("a:b", "c", "d"), "a%3Ab:c:d"),
        (("a", "b:c", "d"), "a:b%3Ac:d"),
        (("a", "b/c", "100%"), "a:b%2Fc:100%25"),
    ],
)
def test_a_run_is_named_by_its_session_and_by_no_other(
    parts: tuple[str, str, str], name: str
) -> None:
    assert run_name(*parts) == name


def test_the_first_message_opens_the_run_with_what_of_its_state_can_be_kept() -> None:
    store = MemoryStore(clock=Noon())
    begun = Sessions(journal(store)).begin(message("hi", state={"n": 1, "odd": object()}))
    assert (begun.attempt.step, begun.attempt.number, begun.done) == ("s0", 1, 0)
    assert begun.attempt.session == "c1"
    (opened,) = rows(store, RunOpened)
    assert bytes(opened.state) == b'{"n":1}'


def test_another_message_is_another_step_and_the_same_one_of_the_same_turn_is_not() -> None:
    store = MemoryStore(clock=Noon())
    log = Sessions(journal(store))
    asked = [message("hi"), message("hi"), message("hi", turn="e2"), message("no", turn="e2")]
    begun = [log.begin(one).attempt for one in asked]
    assert [(one.step, one.number) for one in begun] == [
        ("s0", 1),
        ("s0", 2),
        ("s1", 1),
        ("s2", 1),
    ]


class Behind(MemoryStore):
    """Its first look at a run is from before another process began the run's first step."""

    stale = True

    def read(self, run: str | None = None) -> Iterator[Event]:
        if self.stale:
            self.stale = False
            Sessions(journal(self)).begin(message("theirs", turn="e9"))
            return iter(())
        return super().read(run)


def test_of_two_processes_that_begin_a_step_at_once_one_begins_the_next() -> None:
    store = Behind(clock=Noon())
    begun = Sessions(journal(store)).begin(message("ours"))
    assert begun.attempt.step == "s1"
    assert [bytes(row.message) for row in rows(store, StepStarted)] == [
        bytes(message("theirs").content),
        bytes(message("ours").content),
    ]


def test_a_step_with_nothing_open_is_passed() -> None:
    store = MemoryStore(clock=Noon())
    log = Sessions(journal(store))
    log.end(log.begin(message("hi")))
    assert [row.cursor for row in rows(store, CursorAdvanced)] == [1]
    assert [row.outcome for row in rows(store, AttemptEnded)] == ["done"]


def test_a_step_that_failed_or_is_unfinished_is_not_passed_and_the_next_one_catches_up() -> None:
    store = MemoryStore(clock=Noon())
    log = Sessions(journal(store))
    log.end(log.begin(message("hi")), error=ValueError("no"))
    held = log.begin(message("ho", turn="e2"))
    held.attempt.due["pay"] = 1
    log.end(held)
    assert rows(store, CursorAdvanced) == []
    assert [row.outcome for row in rows(store, AttemptEnded)] == ["error", "held"]
    log.end(log.begin(message("he", turn="e3")))
    assert [row.cursor for row in rows(store, CursorAdvanced)] == [1, 2, 3]


def test_the_cursor_stays_over_an_effect_that_another_attempt_left_open() -> None:
    store = MemoryStore(clock=Noon())
    log = Sessions(journal(store))
    begun = log.begin(message("pay"))
    claimed = EffectClaimed(
        run=begun.attempt.run, at="", step="s0", tool="pay", key="k", fingerprint="f", owner="x"
    )
    claim = store.claim(claimed)
    log.end(begun)
    log.end(log.begin(message("hi", turn="e2")))
    assert rows(store, CursorAdvanced) == []
    done = EffectCommitted(run=claimed.run, at="", key="k", result=msgspec.Raw(b"1"))
    store.settle(done, claim=claim)  # type: ignore[arg-type]  # it was granted
    log.end(log.begin(message("ho", turn="e3")))
    assert [(row.cursor, row.effects) for row in rows(store, CursorAdvanced)] == [
        (1, ("k",)),
        (2, ()),
        (3, ()),
    ]


class Counting(MemoryStore):
    """Counts how often a run is read."""

    reads = 0

    def read(self, run: str | None = None) -> Iterator[Event]:
        self.reads += 1
        return super().read(run)


def test_a_run_is_read_once_however_long_it_goes_on() -> None:
    store = Counting(clock=Noon())
    log = Sessions(journal(store))
    for turn in "abcde":
        log.end(log.begin(message("hi", turn=turn)))
    assert store.reads == 1
    assert [row.cursor for row in rows(store, CursorAdvanced)] == [1, 2, 3, 4, 5]


def test_what_another_process_did_meanwhile_is_seen_as_the_next_step_begins() -> None:
    store = Counting(clock=Noon())
    ours, theirs = Sessions(journal(store)), Sessions(journal(store))
    ours.end(ours.begin(message("a")))
    theirs.end(theirs.begin(message("b", turn="e2")))
    again = ours.begin(message("b", turn="e2")).attempt  # theirs, delivered to us, too
    assert (again.step, again.number) == ("s1", 2)
    next_one = ours.begin(message("c", turn="e3")).attempt
    assert (next_one.step, next_one.number) == ("s2", 1)


def test_many_runs_are_not_remembered_for_ever() -> None:
    store = MemoryStore(clock=Noon())
    log = Sessions(journal(store), keep=2)
    for session in "abcd":
        log.end(log.begin(message("hi", session=session)))
    assert len(rows(store, CursorAdvanced)) == 4


def test_the_cursor_waits_for_a_message_that_is_still_being_answered() -> None:
    store = MemoryStore(clock=Noon())
    log = Sessions(journal(store))
    first, second = log.begin(message("slow")), log.begin(message("quick", turn="e2"))
    log.end(second)
    assert rows(store, CursorAdvanced) == []
    log.end(first)
    log.end(log.begin(message("third", turn="e3")))
    assert [row.cursor for row in rows(store, CursorAdvanced)] == [1, 2, 3]


class Hiccup(MemoryStore):
    """Does not take the next end of an attempt."""

    busy = True

    def append(self, event: Event) -> bool:
        if self.busy and isinstance(event, AttemptEnded):
            self.busy = False
            raise BackstopError("busy", slug="store-busy")
        return super().append(event)


def test_an_end_that_the_store_did_not_take_is_said_later_and_holds_no_cursor_for_ever() -> None:
    store = Hiccup(clock=Noon())
    log = Sessions(journal(store))
    begun = log.begin(message("hi"))
    with pytest.raises(BackstopError):
        log.end(begun)
    log.end(log.begin(message("and", turn="e2")))
    assert [row.cursor for row in rows(store, CursorAdvanced)] == [1, 2]
