"""A deliberate repeat of what was done: a further life of the same record."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from backstop.adapters.records import (
    Record,
)
from backstop.core.events import (
    EffectClaimed,
)
from backstop.core.lifecycle import Life, Phase
from backstop.ports import (
    InDoubt,
    Recorded,
)
from tests.unit.adapters.test_records import (
    AGAIN,
    AND_AGAIN,
    doubted,
    failed,
    granted,
    paid,
    pay,
    ruled,
    settled,
)


def committed_twice(second: EffectClaimed) -> Record:
    """The first call is committed; `second` is granted as its repeat, and runs."""
    first = granted(None, pay())
    return granted(settled(first, paid(first, b'"first"')), second, at=300)


FIRST = Recorded(
    result=msgspec.Raw(b'"first"'),
    state_delta=msgspec.Raw(b'{"n":1}'),
    actions=msgspec.Raw(b'{"skip":true}'),
)


def test_a_deliberate_repeat_is_granted_once_as_a_further_life() -> None:
    running = committed_twice(pay(override=AGAIN))
    assert running.life == Life(phase=Phase.EXECUTING, fence=2)
    assert running.since == 300  # a provider knows the repeat's key since the repeat
    done = settled(running, paid(running, b'"second"'))
    answer = ruled(done, pay("bob", override=AGAIN))
    assert isinstance(answer, Recorded)
    assert answer.result == msgspec.Raw(b'"second"')
    third = granted(done, pay("bob", override=AND_AGAIN))
    assert third.life == Life(phase=Phase.EXECUTING, fence=3)
    assert third.overrides == (AGAIN,)


def test_an_override_on_the_first_call_of_all_is_no_repeat() -> None:
    record = granted(None, pay(override=AGAIN))
    done = settled(record, paid(record))
    assert isinstance(ruled(done, pay("bob", override=AGAIN)), Recorded)
    assert isinstance(ruled(done, pay("bob")), Recorded)


@pytest.mark.parametrize(
    "fate",
    [
        lambda record: record,
        lambda record: settled(record, failed(record, final=False)),
        lambda record: settled(record, failed(record, final=True)),
        lambda record: settled(record, doubted(record)),
    ],
    ids=["running", "failed for now", "failed for good", "in doubt"],
)
def test_the_first_call_stays_done_whatever_becomes_of_its_repeat(
    fate: Callable[[Record], Record],
) -> None:
    record = fate(committed_twice(pay(override=AGAIN)))
    assert ruled(record, pay("bob")) == FIRST


def test_a_repeat_that_did_not_happen_may_be_asked_for_again_after_another_one() -> None:
    record = committed_twice(pay(override=AGAIN))
    record = settled(record, failed(record, final=False))
    record = granted(record, pay(override=AND_AGAIN))
    record = settled(record, paid(record))
    assert ruled(record, pay("bob")) == FIRST
    late = granted(record, pay("bob", override=AGAIN))
    assert late.overrides == (AND_AGAIN,)
    assert isinstance(ruled(late, pay(override=AND_AGAIN)), Recorded)


def test_a_doubt_about_a_repeat_says_that_it_is_one() -> None:
    record = committed_twice(pay(override=AGAIN))
    answer = ruled(settled(record, doubted(record)), pay("bob", override=AGAIN))
    assert isinstance(answer, InDoubt)
    assert (answer.override, answer.repeats) == (AGAIN, True)
