"""Runs without a driver: names, places, and a cursor that passes nothing open."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.events import (
    AttemptEnded,
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    Event,
    RunOpened,
    StepStarted,
)
from backstop.core.identity import Declaration, Namespace
from backstop.guard import sessions
from backstop.guard.journal import Journal, as_sent
from backstop.guard.sessions import Message, run_name


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
    begun = sessions.begin(journal(store), message("hi", state={"n": 1, "odd": object()}))
    assert (begun.attempt.step, begun.attempt.number, begun.done) == ("s0", 1, 0)
    assert begun.attempt.session == "c1"
    (opened,) = rows(store, RunOpened)
    assert bytes(opened.state) == b'{"n":1}'


def test_another_message_is_another_step_and_the_same_one_of_the_same_turn_is_not() -> None:
    store = MemoryStore(clock=Noon())
    log = journal(store)
    asked = [message("hi"), message("hi"), message("hi", turn="e2"), message("no", turn="e2")]
    begun = [sessions.begin(log, one).attempt for one in asked]
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
            sessions.begin(journal(self), message("theirs", turn="e9"))
            return iter(())
        return super().read(run)


def test_of_two_processes_that_begin_a_step_at_once_one_begins_the_next() -> None:
    store = Behind(clock=Noon())
    begun = sessions.begin(journal(store), message("ours"))
    assert begun.attempt.step == "s1"
    assert [bytes(row.message) for row in rows(store, StepStarted)] == [
        bytes(message("theirs").content),
        bytes(message("ours").content),
    ]


def test_a_step_with_nothing_open_is_passed() -> None:
    store = MemoryStore(clock=Noon())
    log = journal(store)
    sessions.end(log, sessions.begin(log, message("hi")))
    assert [row.cursor for row in rows(store, CursorAdvanced)] == [1]
    assert [row.outcome for row in rows(store, AttemptEnded)] == ["done"]


def test_a_step_that_failed_or_is_unfinished_is_not_passed_and_the_next_one_catches_up() -> None:
    store = MemoryStore(clock=Noon())
    log = journal(store)
    sessions.end(log, sessions.begin(log, message("hi")), error=ValueError("no"))
    held = sessions.begin(log, message("ho", turn="e2"))
    held.attempt.due["pay"] = 1
    sessions.end(log, held)
    assert rows(store, CursorAdvanced) == []
    assert [row.outcome for row in rows(store, AttemptEnded)] == ["error", "held"]
    sessions.end(log, sessions.begin(log, message("he", turn="e3")))
    assert [row.cursor for row in rows(store, CursorAdvanced)] == [1, 2, 3]


def test_the_cursor_stays_over_an_effect_that_another_attempt_left_open() -> None:
    store = MemoryStore(clock=Noon())
    log = journal(store)
    begun = sessions.begin(log, message("pay"))
    claimed = EffectClaimed(
        run=begun.attempt.run, at="", step="s0", tool="pay", key="k", fingerprint="f", owner="x"
    )
    claim = store.claim(claimed)
    sessions.end(log, begun)
    sessions.end(log, sessions.begin(log, message("hi", turn="e2")))
    assert rows(store, CursorAdvanced) == []
    done = EffectCommitted(run=claimed.run, at="", key="k", result=msgspec.Raw(b"1"))
    store.settle(done, claim=claim)  # type: ignore[arg-type]  # it was granted
    sessions.end(log, sessions.begin(log, message("ho", turn="e3")))
    assert [(row.cursor, row.effects) for row in rows(store, CursorAdvanced)] == [
        (1, ("k",)),
        (2, ()),
        (3, ()),
    ]
