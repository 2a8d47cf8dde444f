"""A budget: reserved before a call, settled after it, and never counted twice."""

from __future__ import annotations

from backstop.core.spending import ANSWER_TOKENS, Budget, Limits, Spend


def test_a_spend_adds_up() -> None:
    both = Spend(calls=1, tokens_in=10, tokens_out=5) + Spend(calls=2, tokens_in=1, tokens_out=2)
    assert both == Spend(calls=3, tokens_in=11, tokens_out=7)
    assert both.tokens == 18


def test_calls_under_way_count_before_they_are_answered() -> None:
    budget = Budget(limits=Limits(calls=2))
    first = budget.reserve(size=400, answer=50)
    assert first == Spend(calls=1, tokens_in=100, tokens_out=50)
    assert isinstance(budget.reserve(size=1, answer=1), Spend)
    assert budget.reserve(size=1, answer=1) == "the budget of 2 model calls is used up"


def test_what_a_call_left_of_its_room_is_free_again() -> None:
    budget = Budget(limits=Limits(tokens=10_000))
    room = budget.reserve(size=4, answer=None)
    assert room == Spend(calls=1, tokens_in=1, tokens_out=ANSWER_TOKENS)
    assert isinstance(room, Spend)
    assert budget.reserve(size=4, answer=None) == (
        "a call of up to 8,193 tokens may exceed the budget of 10,000"
    )
    assert budget.settle(room, Spend(calls=1, tokens_in=10, tokens_out=5)) is None
    assert budget.spent == Spend(calls=1, tokens_in=10, tokens_out=5)
    assert isinstance(budget.reserve(size=4, answer=None), Spend)


def test_an_answer_that_exceeds_the_budget_does_not_count_and_is_paid() -> None:
    budget = Budget(limits=Limits(tokens=100))
    room = budget.reserve(size=40, answer=20)
    assert isinstance(room, Spend)
    over = budget.settle(room, Spend(calls=1, tokens_in=10, tokens_out=91))
    assert over == "this answer exceeds the budget of 100 tokens"
    assert budget.spent.tokens == 101
