"""Messages: what they say, and which step they are about."""

from __future__ import annotations

import dataclasses
import json

import msgspec
import pytest

from backstop.core.events import (
    AttemptStarted,
    Event,
    StepStarted,
)
from backstop.ports import Delivery, Done, Later
from tests.unit.guard.town import Town, handle, tick

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_content_that_set_a_step_off_is_what_every_try_at_it_is_about() -> None:
    town = Town(faults=[TimeoutError("no answer")])
    handle(town.worker("a"), tick("x@y"))
    town.resolve("reopened", fence=2)
    assert isinstance(handle(town.worker("a"), tick("other@y", id="m2")), Done)
    assert town.mails == ["x@y", "x@y"]


def test_s1_a_trigger_key_names_a_step_once() -> None:
    """S1: whoever ticks by the calendar need not know the cursor."""
    town = Town()
    worker = town.worker("a")
    weeks = [tick(cursor=None, trigger_key=f"2026-W{week}") for week in (10, 10, 11, 10, 11)]
    assert all(isinstance(handle(worker, week), Done) for week in weeks)
    steps = town.events(StepStarted)
    assert [(step.cursor, step.trigger_key) for step in steps] == [(0, "2026-W10"), (1, "2026-W11")]
    assert town.cursor() == 2


def test_a_second_trigger_key_waits_for_the_step_that_is_under_way() -> None:
    town = Town(faults=[TimeoutError("no answer")])
    worker = town.worker("a")
    handle(worker, tick("x@y", cursor=None, trigger_key="k1"))
    answer = handle(worker, tick(cursor=None, trigger_key="k2"))
    assert answer == Later(reason="step s0 is under way, and it is another one")


def test_of_two_trigger_keys_that_race_for_a_step_one_waits() -> None:
    town = Town()

    def other_first(event: Event) -> None:
        if isinstance(event, StepStarted):
            town.store.before_append = None
            town.store.append(msgspec.structs.replace(event, trigger_key="k2"))

    town.store.before_append = other_first
    worker = town.worker("a")
    answer = handle(worker, tick("x@y", cursor=None, trigger_key="k1"))
    assert answer == Later(reason="step s0 was begun meanwhile, by another message")
    assert (town.mails, town.events(AttemptStarted)) == ([], [])
    assert isinstance(handle(worker, tick(cursor=None, trigger_key="k2")), Done)
    assert isinstance(handle(worker, tick("x@y", cursor=None, trigger_key="k1")), Done)
    assert (town.mails, town.cursor()) == (["x@y"], 2)


def test_a_step_known_by_name_is_not_taken_for_one_known_by_number() -> None:
    town = Town()
    worker = town.worker("a")
    handle(worker, tick(cursor=None, trigger_key="k1"))
    answer = handle(worker, tick("x@y", cursor=0))
    assert isinstance(answer, Later)  # acknowledging it would skip it in silence
    assert "step s0 is known by k1" in answer.reason


@pytest.mark.parametrize(
    ("attributes", "data", "why"),
    [
        ({}, b"", "`run` must name a run"),
        ({"run": "a/b"}, b"", "`run` must name a run, without a slash"),
        ({"run": "r" * 1501, "cursor": "0"}, b"", "`run` must name a run"),
        ({"run": "r"}, b"", "either `cursor` or `trigger_key`"),
        ({"run": "r", "cursor": "0", "trigger_key": "k"}, b"", "either `cursor` or"),
        ({"run": "r", "cursor": "-1"}, b"", "`cursor` is '-1'"),
        ({"run": "r", "cursor": "٣"}, b"", "which is no number of a step"),
        ({"run": "r", "cursor": "9" * 10}, b"", "which is no number of a step"),
        ({"run": "r", "cursor": "0", "state": "[]"}, b"", "`state` is no JSON object"),
        ({"run": "r", "cursor": "0", "state": "{}"}, b"", "with `state` goes a `user`"),
        ({"run": "r", "cursor": "0"}, b"\xff", "its data is no text/plain"),
        ({"run": "r", "cursor": "0", "content_type": "application/json"}, b"{", "its data is no"),
        ({"run": "r", "cursor": "0", "content_type": "image/png"}, b"", "write text/plain or"),
    ],
)
def test_a_message_that_cannot_be_understood_is_given_back_never_acknowledged(
    attributes: dict[str, str], data: bytes, why: str
) -> None:
    town = Town()
    answer = handle(town.worker("a"), Delivery(id="m", attributes=attributes, data=data))
    assert isinstance(answer, Later)
    assert answer.reason.startswith("error[tick]: message m cannot be understood")
    assert why in answer.reason
    assert list(town.store.read()) == []


def test_a_content_of_the_framework_goes_through_as_it_is() -> None:
    town = Town()
    content = {"role": "user", "parts": [{"text": '[["send_mail", {"to": "x@y"}]]'}]}
    delivery = tick(content_type="application/json", trigger="approval")
    delivery = dataclasses.replace(delivery, data=json.dumps(content).encode())
    assert isinstance(handle(town.worker("a"), delivery), Done)
    step = town.events(StepStarted)[0]
    assert (town.mails, step.trigger) == (["x@y"], "approval")
    assert msgspec.json.decode(step.message) == content
