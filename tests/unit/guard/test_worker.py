"""The worker: what becomes of a message, with the real runner behind it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from backstop.core.events import (
    AttemptEnded,
    AttemptStarted,
    CallAnswered,
    CursorAdvanced,
    EffectClaimed,
    EffectInDoubt,
    Event,
    ModelAnswered,
    RunClosed,
    StepStarted,
)
from backstop.errors import BackstopError
from backstop.guard.claims.capability import Happened, probe
from backstop.guard.claims.safety import LEASE_S, Safety
from backstop.ports import Delivery, Done, Handled, Later
from tests.unit.guard.town import Died, Town, handle, tick

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_step_that_is_done_is_acknowledged_and_the_cursor_moves() -> None:
    town = Town()
    assert isinstance(handle(town.worker("a"), tick("x@y")), Done)
    assert (town.mails, town.cursor()) == (["x@y"], 1)
    assert [end.outcome for end in town.events(AttemptEnded)] == ["done"]


def test_s06_s07_one_tick_delivered_three_times_is_one_step_whatever_its_ids() -> None:
    """S06, S07: a step is known by run and cursor (S1), never by the message's id."""
    town = Town()
    answers = [handle(town.worker(f"w{n}"), tick("x@y", id=name)) for n, name in enumerate("aab")]
    assert all(isinstance(answer, Done) for answer in answers)
    assert (town.mails, town.cursor()) == (["x@y"], 1)
    assert len(town.events(AttemptStarted)) == 1  # what is behind costs no further try


def test_s1_two_ticks_of_equal_content_are_two_steps() -> None:
    """S1: two weekly ticks look alike."""
    town = Town()
    worker = town.worker("a")
    assert [type(handle(worker, tick(cursor=n))) for n in (0, 1)] == [Done, Done]
    assert (town.cursor(), len(town.events(StepStarted))) == (2, 2)


def test_a_tick_ahead_of_the_cursor_is_given_back_and_leaves_no_trace() -> None:
    town = Town()
    worker = town.worker("a")
    handle(worker, tick(cursor=0))
    before = len(list(town.store.read()))
    answer = handle(worker, tick("x@y", cursor=2))
    assert answer == Later(reason="the run is at step s1")
    assert (town.mails, len(list(town.store.read()))) == ([], before)


def test_s06_a_delivery_beside_one_that_is_at_work_is_given_back() -> None:
    """S06: a message handled twice while the first still works is held, not run."""
    town = Town()
    seen: list[Handled] = []

    async def meanwhile(to: str) -> None:
        other = asyncio.create_task(town.worker("b").handle(tick("x@y")))
        seen.append(await other)

    town.on_mail = meanwhile
    assert isinstance(handle(town.worker("a"), tick("x@y")), Done)
    assert isinstance(seen[0], Later)
    assert "a/s0.1 is at send_mail" in seen[0].reason
    assert (town.mails, town.cursor()) == (["x@y"], 1)
    assert isinstance(handle(town.worker("b"), tick("x@y")), Done)  # its redelivery


def test_s06_of_three_workers_at_one_step_at_once_one_asks_the_model() -> None:
    """S06: whoever asks a model twice may get two answers, and two effects with two keys."""
    town = Town()

    async def all_at_once() -> list[Handled]:
        workers = [town.worker(name) for name in "abc"]
        return await asyncio.gather(*(worker.handle(tick("x@y")) for worker in workers))

    answers = asyncio.run(all_at_once())
    assert [type(answer) for answer in answers].count(Done) == 1
    assert answers.count(Later(reason="another delivery is at step s0")) == 2
    assert (town.mails, len(town.events(AttemptStarted))) == (["x@y"], 1)
    assert len(town.events(ModelAnswered)) == 2  # the call, and the last word


def test_two_that_find_a_step_free_at_once_do_not_both_take_it() -> None:
    town = Town()

    def other_first(event: Event) -> None:
        if isinstance(event, AttemptStarted):
            town.store.before_append = None
            town.store.append(msgspec.structs.replace(event, owner="b"))

    town.store.before_append = other_first
    answer = handle(town.worker("a"), tick("x@y"))
    assert answer == Later(reason="another delivery is at step s0")
    assert town.mails == []
    town.dead.add("b")
    assert isinstance(handle(town.worker("a"), tick("x@y")), Done)


def test_an_attempt_that_nobody_can_see_is_waited_for_as_long_as_a_lease() -> None:
    town = Town(out_of_sight={"a"})
    town.dies_at(AttemptEnded, "a")
    with contextlib.suppress(Died):
        handle(town.worker("a"), tick("x@y"))
    worker = town.worker("b")
    assert isinstance(handle(worker, tick("x@y")), Later)
    town.clock.late = timedelta(seconds=LEASE_S - 1)
    assert isinstance(handle(worker, tick("x@y")), Later)
    town.clock.late = timedelta(seconds=LEASE_S)
    assert isinstance(handle(worker, tick("x@y")), Done)
    assert (town.mails, town.cursor()) == (["x@y"], 1)


def test_an_attempt_whose_end_could_not_be_written_is_ended_at_the_next_message() -> None:
    town = Town()

    def down(event: Event) -> None:
        if isinstance(event, AttemptEnded):
            raise BackstopError("the store does not answer", slug="store-down")

    town.store.before_append = down
    worker = town.worker("a")
    assert isinstance(handle(worker, tick("x@y")), Later)
    town.store.before_append = None
    assert isinstance(handle(town.worker("b"), tick("x@y")), Later)  # for all that b can see
    assert isinstance(handle(worker, tick("x@y", cursor=7)), Later)
    assert [end.outcome for end in town.events(AttemptEnded)] == ["error"]
    assert isinstance(handle(town.worker("b"), tick("x@y")), Done)
    assert (town.mails, town.cursor()) == (["x@y"], 1)


def test_s07_a_redelivery_after_the_effect_gets_what_is_on_record() -> None:
    """S07: the worker died between the effect and the move of the cursor."""
    town = Town()
    town.dies_at(CursorAdvanced, "a")
    with contextlib.suppress(Died):
        handle(town.worker("a"), tick("x@y"))
    assert (town.mails, town.cursor()) == (["x@y"], 0)
    assert isinstance(handle(town.worker("b"), tick("x@y")), Done)
    assert (town.mails, town.cursor()) == (["x@y"], 1)
    assert [said.how for said in town.events(CallAnswered)] == ["recorded"]


def test_w05_who_loses_one_effect_starts_no_other_of_the_step() -> None:
    """W05: the loser of a step must stop, not go on to the mail that comes after."""
    town = Town()

    def taken(intent: EffectClaimed) -> None:
        town.store.claim(msgspec.structs.replace(intent, owner="a/s0.9"))

    town.store.before_claim = taken
    answer = handle(town.worker("b"), tick("first@y", "second@y"))
    assert isinstance(answer, Later)
    assert [said.how for said in town.events(CallAnswered)] == ["held", "held"]
    assert (town.mails, town.cursor()) == ([], 0)
    assert [end.outcome for end in town.events(AttemptEnded)] == ["held"]


def test_w06_a_step_that_a_live_worker_is_at_is_not_adopted() -> None:
    """W06: a claim has an owner; while that lives, nobody else tries the step."""
    town = Town()

    async def second(to: str) -> None:
        town.on_mail = None
        for _ in range(3):
            assert isinstance(await town.worker("b").handle(tick("x@y")), Later)

    town.on_mail = second
    handle(town.worker("a"), tick("x@y"))
    assert (town.mails, len(town.events(AttemptStarted))) == (["x@y"], 1)


def killed_in_a_mail(town: Town) -> None:
    """Worker `a` is gone in the middle of a mail, which did not go out."""

    async def die(to: str) -> None:
        town.dead.add("a")
        town.store.unreachable = True
        raise Died

    town.on_mail = die
    with contextlib.suppress(Died):
        handle(town.worker("a"), tick("x@y"))
    town.on_mail, town.store.unreachable = None, False


def test_w13_a_worker_killed_in_an_effect_leaves_it_in_doubt_and_nobody_does_it_again() -> None:
    """W13: neither output nor error is on record; that is a legal state."""
    town = Town()
    killed_in_a_mail(town)
    answers = [handle(town.worker("b"), tick("x@y")) for _ in range(3)]
    assert all(isinstance(answer, Later) for answer in answers)
    assert "is in doubt: resolve it" in answers[-1].reason
    assert (town.mails, town.cursor()) == ([], 0)
    assert len(town.events(AttemptStarted)) == 2  # once told, it waits without trying

    town.resolve("reopened", fence=2)
    assert isinstance(handle(town.worker("b"), tick("x@y")), Done)
    assert (town.mails, town.cursor()) == (["x@y"], 1)


def test_s11_a_worker_that_nobody_can_see_is_not_replaced_while_its_lease_runs() -> None:
    """S11, S01: the old owner cannot be stopped; after its lease the effect is in doubt."""
    town = Town(out_of_sight={"a"})
    killed_in_a_mail(town)
    worker = town.worker("b")
    answer = handle(worker, tick("x@y"))
    assert "a/s0.1 is at send_mail" in answer.reason
    assert len(town.events(AttemptStarted)) == 1
    town.clock.late = timedelta(seconds=LEASE_S)
    assert isinstance(handle(worker, tick("x@y")), Later)
    assert len(town.events(EffectInDoubt)) == 1
    assert (town.mails, town.cursor()) == ([], 0)


def test_an_effect_that_can_be_looked_up_needs_no_person_when_its_worker_was_killed() -> None:
    found: list[str] = []

    def look(key: str, arguments: Mapping[str, Any]) -> Happened:
        found.append(arguments["to"])
        return Happened({"sent": "x@y"})

    town = Town(safety=Safety(capability=probe(look, settle="1s")))
    killed_in_a_mail(town)
    assert isinstance(handle(town.worker("b"), tick("x@y")), Done)
    assert (found, town.mails, town.cursor()) == (["x@y"], [], 1)


def test_an_effect_in_doubt_holds_the_step_until_a_person_resolves_it() -> None:
    town = Town(faults=[TimeoutError("no answer")])
    worker = town.worker("a")
    assert isinstance(handle(worker, tick("x@y")), Later)
    assert isinstance(handle(worker, tick("x@y")), Later)
    assert (town.mails, town.cursor()) == (["x@y"], 0)
    town.resolve("committed", fence=1)
    assert isinstance(handle(worker, tick("x@y")), Done)
    assert (town.mails, town.cursor()) == (["x@y"], 1)


def test_a_doubt_that_another_version_left_is_tried_since_this_one_may_know_more() -> None:
    town = Town(faults=[TimeoutError("no answer")])
    handle(town.worker("a"), tick("x@y"))
    assert isinstance(handle(town.worker("a", version="v2"), tick("x@y")), Later)
    assert len(town.events(AttemptStarted)) == 2


def test_a_failed_attempt_is_given_back_with_what_it_raised() -> None:
    town = Town()
    answer = handle(town.worker("a"), Delivery(
        id="m", attributes={"run": "r1", "cursor": "0", "user": "u", "state": "{}"}, data=b"no list"
    ))  # fmt: skip
    assert isinstance(answer, Later)
    assert "JSONDecodeError" in answer.reason
    assert [end.outcome for end in town.events(AttemptEnded)] == ["error"]
    assert town.cursor() == 0


def test_a_closed_run_takes_no_further_step_and_acknowledges_what_was_done() -> None:
    town = Town()
    worker = town.worker("a")
    handle(worker, tick())
    town.store.append(RunClosed(run="r1", at="", status="complete"))
    assert isinstance(handle(worker, tick()), Done)
    answer = handle(worker, tick(cursor=1))
    assert answer == Later(reason="the run is closed, and this step of it was never done")


def test_a_run_that_nobody_opened_waits() -> None:
    town = Town()
    delivery = Delivery(id="m", attributes={"run": "r1", "cursor": "0"}, data=b"[]")
    answer = handle(town.worker("a"), delivery)
    assert answer == Later(reason="run r1 is not open: its first message says `state`")


def test_a_store_that_cannot_be_reached_gives_the_message_back() -> None:
    town = Town()

    def down(event: Event) -> None:
        raise BackstopError("the store does not answer; start it", slug="store-down")

    town.store.before_append = down
    answer = handle(town.worker("a"), tick("x@y"))
    assert answer == Later(reason="error[store-down]: the store does not answer; start it")
    assert town.mails == []


def test_a_store_that_waits_for_a_network_is_asked_off_the_event_loop() -> None:
    town = Town()
    loops: list[bool] = []

    def where(event: Event) -> None:
        loops.append(threading.current_thread() is threading.main_thread())

    town.store.before_append = where
    type(town.store).blocking = True
    try:
        assert isinstance(handle(town.worker("a"), tick("x@y")), Done)
    finally:
        del type(town.store).blocking
    assert loops[:3] == [False, False, False]  # run, step and attempt
