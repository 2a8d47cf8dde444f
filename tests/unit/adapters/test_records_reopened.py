"""I5: what was reopened runs again, or is in doubt anew."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from backstop.adapters.records import (
    Doubtful,
    Granted,
    Record,
    settling,
)
from backstop.core.lifecycle import Life, Phase
from backstop.errors import BackstopError
from tests.unit.adapters.test_records import AGAIN, doubtful, pay, resolved, ruled, settled

BY_KEY: Final[dict[str, Any]] = {"capability": "keyed", "retention_s": 1000}


def reopened(by: str) -> Record:
    record = doubtful(**BY_KEY)
    return settled(record, msgspec.structs.replace(resolved(record, "reopened"), by=by), at=300)


def test_i5_what_a_providers_memory_reopened_runs_again_with_its_key() -> None:
    """I5."""
    answer = ruled(reopened("keyed"), pay("bob", **BY_KEY), now=1099)
    assert isinstance(answer, Granted)


@pytest.mark.parametrize(
    ("about", "now"),
    [
        ({}, 400),
        ({"capability": "probe"}, 400),
        (BY_KEY | {"override": AGAIN}, 400),
        (BY_KEY | {"retention_s": 200}, 400),
        (BY_KEY, 1100),
    ],
    ids=["no key", "a probe", "another key", "a shorter memory", "too late"],
)
def test_i5_what_a_providers_memory_reopened_is_in_doubt_again_without_it(
    about: dict[str, Any], now: float
) -> None:
    """I5: it may have happened before it was reopened."""
    answer = ruled(reopened("keyed"), pay("bob", **about), now=now)
    assert isinstance(answer, Doubtful)
    assert answer.record.life == Life(phase=Phase.IN_DOUBT, fence=2)
    assert not answer.event.running


@pytest.mark.parametrize("by", ["ada", "probe"])
def test_what_a_person_or_a_lookup_reopened_runs_again_whenever_it_comes(by: str) -> None:
    assert isinstance(ruled(reopened(by), pay("bob")), Granted)


@pytest.mark.parametrize("to", ["committed", "reopened"])
def test_a_resolution_under_another_fence_is_illegal(to: str) -> None:
    record = doubtful()
    stale = msgspec.structs.replace(resolved(record, to), fence=0 if to == "committed" else 1)
    with pytest.raises(BackstopError) as caught:
        settling(record, stale)
    assert caught.value.slug == "illegal-move"
