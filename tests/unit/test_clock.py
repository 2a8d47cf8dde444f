"""The one reader of the real time."""

from __future__ import annotations

from datetime import UTC

from backstop.clock import now


def test_the_time_is_an_instant_in_utc_and_does_not_run_back() -> None:
    first, second = now(), now()
    assert first.tzinfo is UTC
    assert first <= second
