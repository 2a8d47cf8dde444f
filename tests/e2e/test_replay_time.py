"""S3: waiting moves frozen time and takes none, in whichever way a user's code waits."""

from __future__ import annotations

import pytest

from tests.e2e.conversation import AGENTS, Driver, Heard, call, response, text

MODELS = [response(call("order", sku="a")), response(text("done"))]


@pytest.fixture(scope="module")
def patient() -> Heard:
    return Driver(agent=AGENTS / "patient", models=MODELS, runs=2).run()


def told(heard: Heard, name: str) -> list[object]:
    """What the agent wrote down about its waiting."""
    found = heard.steps[0].state[name]
    assert isinstance(found, list)
    return found


def test_s3_a_callback_that_sleeps_an_hour_wakes_an_hour_later(patient: Heard) -> None:
    """S3: what only measures time has seen it pass too."""
    assert told(patient, "backed_off") == ["2026-01-05T10:00:00", 3600]


def test_s3_a_workflow_that_polls_each_minute_sees_ten_minutes_pass(patient: Heard) -> None:
    expected = [f"2026-01-05T10:{minute:02}:00" for minute in range(1, 11)]
    assert told(patient, "polled") == expected


def test_s3_timers_fire_in_order_and_timeouts_when_they_are_due(patient: Heard) -> None:
    assert told(patient, "raced") == [
        *("a", "b", "c"),
        *("not within 5", "within 15", "gave up"),
        "2026-01-05T12:10:45",
    ]


def test_s3_threads_sleep_in_frozen_time_whoever_waits_for_them(patient: Heard) -> None:
    """In the loop's pool, in a pool that blocks the loop, and on a thread by itself."""
    assert told(patient, "threads") == [
        *(100, 200, 300),
        *("not within 500", 900),
        *(20, 30),
        "2026-01-05T12:42:05",
    ]


def test_s3_two_replays_that_wait_are_byte_identical(patient: Heard) -> None:
    first, second = patient.runs
    assert first.digest == second.digest != ""
