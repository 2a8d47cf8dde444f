"""Runs, steps, attempts, and when the cursor moves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.declaration import Namespace
from backstop.core.events import (
    AttemptStarted,
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    Event,
    RunClosed,
    RunOpened,
    StepStarted,
)
from backstop.errors import BackstopError
from backstop.guard.journal import Attempt, Journal, current
from backstop.ports import Claim


class Noon:
    """It is always noon."""

    def now(self) -> datetime:
        return datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.fixture
def journal() -> Journal:
    return Journal(
        store=MemoryStore(clock=Noon()),
        namespace=Namespace(agent="desk"),
        declarations={},
        version="v1",
        owner="worker-1",
    )


def begin(journal: Journal, *, run: str = "r1", cursor: int = 0) -> Attempt:
    return journal.begin(
        run,
        cursor=cursor,
        trigger="tick",
        message={"text": "tick é"},
        state={"b": 1, "a": 2},
        delivery="m1",
    )


def events(journal: Journal) -> list[Event]:
    return list(journal.store.read())


def claim(journal: Journal, key: str, *, step: str) -> Claim:
    intent = EffectClaimed(
        run="r1", at="", step=step, tool="pay", key=key, fingerprint="f", owner="worker-1/s.1"
    )
    claimed = journal.store.claim(intent)
    assert isinstance(claimed, Claim)
    return claimed


def commit(journal: Journal, claim: Claim) -> None:
    journal.store.settle(
        EffectCommitted(run=claim.run, at="", key=claim.key, fence=claim.fence), claim=claim
    )


def test_s1_a_redelivery_is_a_further_attempt_of_the_same_step(journal: Journal) -> None:
    """S1: a step's id is its place in the run, never the delivery's id."""
    first, second = begin(journal), begin(journal)
    assert (first.step, first.number) == ("s0", 1)
    assert (second.step, second.number) == ("s0", 2)
    assert [type(event) for event in events(journal)] == [
        StepStarted,
        AttemptStarted,
        AttemptStarted,
    ]


def test_s1_two_ticks_of_equal_content_are_two_steps(journal: Journal) -> None:
    """S1: nor the message's content."""
    assert begin(journal, cursor=0).step != begin(journal, cursor=1).step
    assert begin(journal, run="r2").number == 1


def test_state_is_canonical_and_the_message_is_as_sent(journal: Journal) -> None:
    begin(journal)
    started = events(journal)[0]
    assert isinstance(started, StepStarted)
    assert bytes(started.state) == b'{"a":2,"b":1}'
    assert bytes(started.message) == '{"text":"tick é"}'.encode()
    assert started.v == "v1"


def test_the_cursor_vouches_for_the_steps_effects(journal: Journal) -> None:
    attempt = begin(journal, cursor=4)
    for key in ("k1", "k2"):
        commit(journal, claim(journal, key, step="s4"))
        attempt.effects[key] = None
    journal.end(attempt, outcome="done")
    assert journal.advance(attempt)
    last = events(journal)[-1]
    assert isinstance(last, CursorAdvanced)
    assert (last.cursor, last.effects) == (5, ("k1", "k2"))


def test_of_two_workers_that_finish_a_step_one_moves_the_cursor(journal: Journal) -> None:
    first, second = begin(journal), begin(journal)
    assert journal.advance(first)
    assert not journal.advance(second)
    assert sum(isinstance(event, CursorAdvanced) for event in events(journal)) == 1


def test_an_attempt_does_not_move_the_cursor_over_what_an_earlier_one_left(
    journal: Journal,
) -> None:
    """I4: the attempt that crashed had claimed, the one that finished did not ask again."""
    begin(journal)
    claimed = claim(journal, "k1", step="s0")
    second = begin(journal)
    with pytest.raises(BackstopError) as caught:
        journal.advance(second)
    assert caught.value.slug == "cursor-held"
    commit(journal, claimed)
    assert journal.advance(second)


def test_the_cursor_does_not_move_over_an_effect_that_is_not_decided(journal: Journal) -> None:
    """I4."""
    attempt = begin(journal)
    attempt.effects["k1"] = "pay k1… is not decided"
    attempt.effects["k2"] = None
    with pytest.raises(BackstopError, match="pay k1") as caught:
        journal.advance(attempt)
    assert caught.value.slug == "cursor-held"
    assert not any(isinstance(event, CursorAdvanced) for event in events(journal))


def test_an_attempt_reaches_tasks_started_within_it_and_nothing_else(journal: Journal) -> None:
    async def look() -> Attempt | None:
        return current()

    async def run() -> None:
        with journal.within(attempt):
            assert await asyncio.create_task(look()) is attempt
        assert await asyncio.create_task(look()) is None

    attempt = begin(journal)
    asyncio.run(run())


def test_ordinals_count_each_agents_requests_in_the_attempt(journal: Journal) -> None:
    attempt = begin(journal)
    assert [attempt.ordinal(agent) for agent in ("a", "a", "b", "a")] == [0, 1, 0, 2]


def test_runs_are_opened_and_closed(journal: Journal) -> None:
    journal.open_run("r1", app="app", user="u", state={})
    journal.close_run("r1", status="complete")
    opened, closed = events(journal)
    assert isinstance(opened, RunOpened)
    assert (opened.app, opened.user, bytes(opened.state)) == ("app", "u", b"{}")
    assert isinstance(closed, RunClosed)
    assert closed.status == "complete"
