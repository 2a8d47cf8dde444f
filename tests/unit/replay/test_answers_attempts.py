"""S1: a step that was tried more than once, or cut off, and what speaks for it."""

from __future__ import annotations

import pytest

from tests.unit.replay.asking import Asking
from tests.unit.replay.test_answers_calls import TOOLS


def test_s1_a_redelivery_that_began_anew_speaks_for_the_step() -> None:
    """S1: attempt 1 read `pending` and crashed; the step's one replay reads what attempt 2 did."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        read check{po: 7} -> pending
        attempt
        read check{po: 7} -> approved
        commit pay{vendor: acme} -> ok
        advance
        """
    ).step("s1")
    assert asking.call("check", po=7) == "approved"
    assert asking.call("pay", vendor="acme") == "ok"
    assert asking.answers.all_asked()


def test_s1_a_resumed_attempt_carries_on_with_further_questions() -> None:
    """S1: attempt 2 begins with another call, so it goes on where attempt 1 crashed."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        commit mail{to: bo} -> sent
        read check{po: 7} -> pending
        attempt
        read check{po: 7} -> approved
        advance
        """
    ).step("s1")
    assert asking.call("mail", to="bo") == "sent"
    assert [asking.call("check", po=7) for _ in range(2)] == ["pending", "approved"]


def test_s1_an_effect_that_failed_in_one_attempt_and_went_out_in_the_next_is_done() -> None:
    """S1: a flop that ended attempt 1 is not met again; the last attempt speaks for the key."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        commit mail{to: bo} -> sent
        flop pay{vendor: acme}
        end error
        attempt
        commit pay{vendor: acme} -> ok
        advance
        """
    ).step("s1")
    asking.call("mail", to="bo")
    assert asking.call("pay", vendor="acme") == "ok"


def test_s1_a_retry_within_an_attempt_is_met_again() -> None:
    """S1: fail, then done, in one attempt: the code's own retry is exercised."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        flop pay{vendor: acme}
        commit pay{vendor: acme} -> ok
        advance
        """
    ).step("s1")
    assert [asking.call("pay", vendor="acme") for _ in range(2)] == ["Flop", "ok"]


CUT_OFF = (
    TOOLS
    + """
    run r1
    step s1
    doubt pay{vendor: acme}
    {resolve}
    step s2
    commit mail{to: x} -> sent
    advance
    """
)


@pytest.mark.parametrize("resolve", ["", "resolve committed pay{vendor: acme} -> paid"])
def test_s1_a_step_that_was_killed_ends_where_a_later_step_took_over(resolve: str) -> None:
    """S1: each message to a session is a step, and a killed one is not taken up again."""
    asking = Asking(CUT_OFF.replace("{resolve}", resolve)).step("s1")
    asking.call("pay", vendor="acme")
    assert asking.call("mail", to="x") == "end_of_record"
    assert asking.step("s2").call("mail", to="x") == "sent"
    assert [intent.step for intent in asking.intents] == ["s1", "s2"]
    assert asking.answers.assumed_from is None


def test_s1_a_call_of_later_steps_ends_no_step_that_still_owes_its_own() -> None:
    """G5: what is asked before the step's own calls moved earlier, killed step or not."""
    asking = Asking(CUT_OFF.replace("{resolve}", "")).step("s1")
    assert asking.call("mail", to="x") == "sent"
    assert asking.answers.assumed_from is not None
