"""What the events of a session amount to, and what is said to be unknown."""

from __future__ import annotations

import pytest

from backstop.adapters.importing.events import Stored
from backstop.adapters.told import ImportRefused
from backstop.core.canon import parse
from backstop.core.events import (
    CallBlocked,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    ModelAnswered,
    RunClosed,
    RunOpened,
    StepStarted,
    ToolRead,
)
from backstop.core.history import Outcome
from tests.unit.adapters.importing.sessions import answer, call, event, ledger, told

ASKED = "This tool call requires confirmation, please approve or reject."
WANTED = {"requested_tool_confirmations": {"k": {"hint": "sure?", "confirmed": False}}}


def test_a_session_is_a_run_and_a_users_message_a_step() -> None:
    found = told(
        event("user", "pay 7"),
        event("desk", "Yes.", call("pay", "c", order=7)),
        event("desk", answer("pay", "c", paid=7), actions={"state_delta": {"last": 7}}),
        event("desk", "Paid."),
    )
    assert found.kinds == [
        *("run_opened", "step_started", "model", "effect_claimed", "effect_committed"),
        *("model", "run_closed"),
    ]
    assert [one.agent for one in found.of(ModelAnswered)] == ["desk", "desk"]
    assert [one.ordinal for one in found.of(ModelAnswered)] == [0, 1]
    assert found.of(EffectClaimed)[0].agent == "desk"
    assert parse(bytes(found.of(EffectCommitted)[0].state_delta)) == {"last": 7}
    assert (found.header.source, found.header.guarded) == ("import:adk-session", False)
    assert found.gaps == []


def test_a04_a_partial_event_is_no_effect_whatever_its_call_is_called() -> None:
    """A04: the partial and the final event of one call carry different ids."""
    found = told(
        event("user", "pay 7"),
        event("desk", call("pay", "p1", order=7), partial=True),
        event("desk", call("pay", "f1", order=7), partial=False),
        event("desk", answer("pay", "f1", paid=7)),
    )
    assert found.paid == [("pay", {"order": 7}, {"paid": 7})]


def test_a07_an_event_that_was_appended_twice_counts_once() -> None:
    """A07, I1: known by its id."""
    said, paid = event("desk", call("pay", "c", order=7)), event("desk", answer("pay", "c", paid=7))
    found = told(
        event("user", "pay 7"),
        {**said, "id": "x"},
        {**said, "id": "x", "timestamp": 1764132651},
        paid,
    )
    assert len(found.paid) == 1


def test_a08_a_session_that_was_read_twice_over_amounts_to_the_same() -> None:
    """A08: each event stands twice with equal id."""
    once = [
        {**event("user", "pay 7"), "id": "a", "timestamp": 1},
        {**event("desk", call("pay", "c", order=7)), "id": "b", "timestamp": 2},
        {**event("desk", answer("pay", "c", paid=7)), "id": "c", "timestamp": 3},
    ]
    twice = [one for one in once for _ in range(2)]
    assert told(*twice).events == told(*once).events
    assert told(*once, *once).events == told(*once).events
    assert told(*twice).gaps == []


def test_two_events_of_one_id_that_differ_are_told_of() -> None:
    found = told(
        {**event("user", "pay 7"), "id": "a"},
        {**event("desk", call("pay", "c", order=7)), "id": "b"},
        {**event("desk", call("pay", "c", order=8)), "id": "b"},
    )
    assert "event b stands in it twice, and not alike" in found.gaps[0]


def test_equal_calls_of_different_events_are_two_effects() -> None:
    """I1: only an event's id makes two one; without any, each counts."""
    pay, paid = event("desk", call("pay", "c", order=7)), event("desk", answer("pay", "c", paid=7))
    for empty in ({}, {"id": ""}):
        one, two = {**pay, **empty}, {**paid, **empty}
        assert len(told(event("user", "pay"), one, two, one, two).paid) == 2


def test_i1_an_answer_belongs_to_the_nearest_call_that_waits() -> None:
    """I1: one call id is used for different calls."""
    found = told(
        event("user", "pay"),
        event("desk", call("pay", "c", order=7)),
        event("desk", answer("pay", "c", paid=7)),
        event("desk", call("pay", "c", order=8)),
        event("desk", answer("pay", "c", paid=8)),
    )
    assert [result for _, _, result in found.paid] == [{"paid": 7}, {"paid": 8}]


def test_parallel_calls_of_one_event_are_answered_in_the_order_of_asking() -> None:
    found = told(
        event("user", "pay"),
        event("desk", call("pay", "c", order=7), call("look", order=1), call("pay", "c", order=8)),
        event("desk", answer("pay", "c", paid=7), answer("look", n=1), answer("pay", "c", paid=8)),
    )
    assert [result for _, _, result in found.paid] == [{"paid": 7}, {"paid": 8}]
    assert parse(bytes(found.of(ToolRead)[0].result)) == {"n": 1}


def test_a10_a_parallel_call_that_was_never_answered_stays_in_doubt() -> None:
    """A10: of two calls one was answered, and then the process died."""
    found = told(
        event("user", "pay"),
        event("desk", call("pay", "a", order=7), call("pay", "b", order=8), call("look", "l")),
        event("desk", answer("pay", "a", paid=7)),
    )
    assert [row.outcome for row in found.ledger.history.rows] == [Outcome.COMMITTED, Outcome.OPEN]
    assert found.of(ToolRead)[0].pending
    assert found.of(RunClosed) == []


def test_a_long_running_call_that_is_answered_later_gave_nothing_itself() -> None:
    found = told(
        event("user", "pay 7"),
        event("desk", call("pay", "l", order=7), long_running_tool_ids=["l"]),
        event("user", answer("pay", "l", approved=True)),
        event("desk", "Paid."),
    )
    assert found.paid == [("pay", {"order": 7}, None)]
    assert len(found.of(StepStarted)) == 2
    assert found.gaps == []


def test_a_long_running_call_that_answered_at_once_keeps_that_answer() -> None:
    found = told(
        event("user", "pay 7"),
        event("desk", call("pay", "l", order=7), long_running_tool_ids=["l"]),
        event("desk", answer("pay", "l", ticket=1)),
        event("user", answer("pay", "l", approved=True)),
    )
    assert found.paid == [("pay", {"order": 7}, {"ticket": 1})]
    assert found.gaps == []


def _confirmed(confirmed: bool, outcome: dict[str, object]) -> list[dict[str, object]]:
    question = call("adk_request_confirmation", "q", originalFunctionCall={"id": "k"})
    return [
        event("user", "pay 7"),
        event("desk", call("pay", "k", order=7)),
        event("desk", question, long_running_tool_ids=["q"]),
        event("desk", answer("pay", "k", error=ASKED), actions=WANTED),
        event("user", answer("adk_request_confirmation", "q", confirmed=confirmed)),
        event("desk", answer("pay", "k", **outcome)),
    ]


def test_a_call_that_was_confirmed_happened_once() -> None:
    found = told(*_confirmed(True, {"paid": 7}))
    assert found.paid[-1][2] == {"paid": 7}
    assert len(found.of(EffectCommitted)) == 1
    assert [one.final for one in found.of(EffectFailed)] == [False]
    assert len(found.of(ModelAnswered)) == 1  # the question is the framework's, not the model's
    assert found.gaps == []


def test_a11_a_call_that_was_declined_did_not_happen() -> None:
    """A11: what the framework says in the tool's place is no result of it."""
    found = told(*_confirmed(False, {"error": "This tool call is rejected."}))
    assert found.of(EffectCommitted) == []
    assert [one.by for one in found.of(CallBlocked)] == ["person"]


def test_a_call_that_lacks_arguments_never_began() -> None:
    why = "Invoking `pay()` failed as the following mandatory input parameters are not present:\nx"
    found = told(
        event("user", "pay"),
        event("desk", call("pay", "c", order=7)),
        event("desk", answer("pay", "c", error=why)),
    )
    assert found.of(EffectCommitted) == []
    assert [one.final for one in found.of(EffectFailed)] == [True]


def test_a21_an_answer_whose_call_was_compacted_away_is_told_of() -> None:
    """A21: history incomplete, so no verdict is a pass."""
    found = told(
        event("desk", actions={"compaction": {"start_timestamp": 1, "end_timestamp": 2}}),
        event("user", answer("pay", "p1", paid=7)),
        event("desk", "Paid."),
    )
    assert "compacted" in found.gaps[0]
    assert "answers a call of pay that is not in the record" in found.gaps[1]
    assert found.paid == []


def test_a24_what_was_paid_before_a_rewind_stays_paid() -> None:
    """A24: a rewind restores the session, not the world."""
    pay = [
        event("desk", call("pay", "c", order=7)),
        event("desk", answer("pay", "c", paid=7)),
    ]
    found = told(
        event("user", "pay 7"),
        *pay,
        event("user", actions={"rewind_before_invocation_id": "i"}),
        event("user", "pay 7"),
        *pay,
    )
    assert len(found.paid) == 2
    assert "it was rewound" in found.gaps[0]


def test_a05_invocations_that_take_turns_are_told_of() -> None:
    """A05: two servers at one session."""
    found = told(
        event("user", "pay 7", invocation="a"),
        event("user", "pay 7", invocation="b"),
        event("desk", call("pay", "x", order=7), invocation="a"),
        event("desk", call("pay", "y", order=7), invocation="b"),
    )
    assert "interleaved" in found.gaps[0]
    apart = told(event("user", "a", invocation="a"), event("user", "b", invocation="b"))
    assert apart.gaps == []


def test_a18_what_an_agent_that_is_a_tool_did_is_not_known() -> None:
    """A18: its session is in memory only."""
    found = told(
        event("user", "pay 7"),
        event("desk", call("payer", "c", request="pay 7")),
        event("desk", answer("payer", "c", result="paid")),
    )
    assert "payer looks like an agent that is a tool" in found.gaps[0]
    assert found.of(ToolRead)[0].steering
    declared = told(event("user", "x"), event("desk", call("look", "c", request="pay 7")))
    assert declared.gaps == []


def test_the_frameworks_own_tools_only_steer() -> None:
    found = told(
        event("user", "pay 7"),
        event("desk", call("transfer_to_agent", "t", agent_name="payer")),
        event("desk", answer("transfer_to_agent", "t"), actions={"transfer_to_agent": "payer"}),
        event("payer", "I am here."),
    )
    (read,) = found.of(ToolRead)
    assert (read.steering, read.decl) == (True, "")
    assert "transfer_to_agent" not in found.header.tools
    assert [one.agent for one in found.of(ModelAnswered)] == ["desk", "payer"]


def test_a_run_begins_with_what_no_event_of_it_changed() -> None:
    changed = event("desk", "x", actions={"state_delta": {"last": 7}})
    found = told(event("user", "x"), changed, state={"limit": 50, "last": 7, "temp:x": 1})
    assert parse(bytes(found.of(RunOpened)[0].state)) == {"limit": 50}


def test_a_state_that_was_changed_from_outside_is_told_of() -> None:
    found = told(event("user", "x", actions={"state_delta": {"vip": True}}))
    assert "changed from outside" in found.gaps[0]


@pytest.mark.parametrize(
    "broken",
    [
        {"content": []},
        {"content": {"parts": {}}},
        {"content": {"parts": ["x"]}},
        {"content": {"parts": [{"function_call": {"args": {}, "id": 3, "name": "pay"}}]}},
        {"content": {"parts": [{"function_call": {"args": {}}}]}},
        {"content": {"parts": [{"function_call": {"args": [], "name": "pay"}}]}},
        {"actions": 3},
        {"timestamp": "now"},
        {"timestamp": -1},
        {"timestamp": 1e300},
        {"author": 1},
        {"id": 3},
    ],
)
def test_an_event_of_another_form_is_refused_with_its_place(broken: dict[str, object]) -> None:
    with pytest.raises(ImportRefused, match=r"test, event 1: ") as refused:
        told(event("user", "x"), {**event("desk", "y"), **broken})
    assert refused.value.slug == "import-shape"


def test_a_call_without_a_key_is_refused_with_its_place() -> None:
    with pytest.raises(ImportRefused, match="test, event 1: ") as refused:
        told(event("user", "x"), event("desk", call("pay", "c", amount=1)))
    assert refused.value.slug == "no-identity"


def test_a_session_of_which_no_event_counts_is_no_run() -> None:
    empty = Stored(app="desk", user="ann", id="none", events=[], place="test")
    with pytest.raises(ImportRefused, match="no conversation to import"):
        ledger([empty])


def test_two_users_with_a_session_of_one_name_are_not_mixed() -> None:
    said = {**event("user", "x"), "timestamp": 1}
    both = [
        Stored(app="desk", user=user, id="one", events=[said], place=user)
        for user in ("ann", "bob")
    ]
    with pytest.raises(ImportRefused, match="bob gives run 'one', as ann does") as refused:
        ledger(both)
    assert refused.value.slug == "import-run-twice"
