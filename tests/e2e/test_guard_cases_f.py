"""The F cases of real incidents, on the real framework.

The same file runs on the newest framework and, by `test_guard_oldest.py`, on the oldest.

| case | here | why not, or where else |
| --- | --- | --- |
| F02 F03 F05 F07 F12 F13 F14 F17 F18 F20 F21 F22 F31 F35 | yes | |
| F08 | no | a kill: `test_guard_cases_s.py` |
| F05 F13 | that the guard acts once | which answer belongs to which call the framework decides |
| F12 | a no that comes before a yes | a run that is closed: `test_guard_cases_s.py` |
| F31 | the run-time half | that a repeated effect is a DUPLICATE is the gate's |
| F35 | the run-time half | the gate's half is G7: clean only where the guard answers |
| F15 | no | that an approved call never comes is MISSING: the gate's |
| F23 F26 F27 F28 F32 F33 | no | keys: `test_identity.py`; repeats: `test_repeats.py` |
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from google.adk.events.request_input import RequestInput
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import START, Workflow, node
from google.genai import types

from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    ToolRead,
)
from backstop.guard.effect import effect
from tests.e2e.till import PAY, Till, answer, asked_of, calls, no, says, told, yes

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(folder=tmp_path)


def test_f02_a_node_with_two_questions_does_each_thing_once(till: Till) -> None:
    """F02: it runs again after each answer, from its first line."""

    @effect
    def first(order: str) -> str:
        till.sent.append("a")
        return order

    @effect
    def second(order: str) -> str:
        till.sent.append("b")
        return order

    @node(rerun_on_resume=True)
    async def work(ctx: Any, node_input: Any) -> Any:
        first("7")
        if "one" not in ctx.resume_inputs:
            yield RequestInput(interrupt_id="one", message="ok?", response_schema=None)
            return
        second("7")
        if "two" not in ctx.resume_inputs:
            yield RequestInput(interrupt_id="two", message="really?", response_schema=None)
            return
        yield "done"

    def pending(events: list[Any]) -> tuple[str, str]:
        [found] = [
            (call.id, call.name)
            for event in events
            for call in event.get_function_calls()
            if call.id in (event.long_running_tool_ids or ())
        ]
        return found

    async def go() -> None:
        await till.session()
        runner = till.runner(Workflow(name="till", edges=[(START, work)]))
        events = await till.say(runner, "go")
        for _ in range(2):
            call, name = pending(events)
            events = await till.say(runner, answer(call, {"result": "yes"}, name))

    asyncio.run(go())
    assert till.sent == ["a", "b"]
    till.verified()


def test_f03_what_ran_beside_a_call_that_waits_is_not_run_again(till: Till) -> None:
    """F03: one of two parallel calls waits for a person; on resume both are asked for again."""
    both = calls(("pay", {"order": "7", "amount": 10}), ("approve", {"order": "8"}))

    def approve(order: str) -> str:
        """Approves."""
        till.sent.append(order)
        return order

    async def go() -> list[Any]:
        await till.session()
        tools = [till.pay, FunctionTool(approve, require_confirmation=True)]
        runner = till.runner(till.agent(both, both, says("done"), says("done"), tools=tools))
        events = await till.say(runner, "go")
        [call] = asked_of(events)
        return await till.say(runner, yes(call))

    events = asyncio.run(go())
    assert sorted(till.sent, key=str) == [("7", 10), "8"]
    assert told(events, "pay") == [{"paid": "7", "amount": 10}]
    till.verified()


def test_f05_an_answer_to_one_of_two_waiting_calls_lets_the_other_wait(till: Till) -> None:
    """F05: an approval belongs to one call with its arguments; one for no call does nothing."""
    both = calls(("pay", {"order": "A", "amount": 1}), ("pay", {"order": "B", "amount": 2}))

    async def go() -> None:
        await till.session()
        tools = [FunctionTool(till.pay, require_confirmation=True)]
        runner = till.runner(till.agent(both, says("a"), says("b"), says("c"), tools=tools))
        first, second = asked_of(await till.say(runner, "go"))
        await till.say(runner, yes(first))
        assert till.sent == [("A", 1)]
        with suppress(ValueError):  # the newest framework refuses it by itself
            await till.say(runner, yes("nobody"))
        await till.say(runner, no(second))

    asyncio.run(go())
    assert till.sent == [("A", 1)]
    till.verified()


def test_f07_a_second_answer_to_one_question_changes_nothing(till: Till) -> None:
    """F07: the approval is consumed; the effect stays as it is, and the record says so."""

    async def go() -> None:
        await till.session()
        tools = [FunctionTool(till.pay, require_confirmation=True)]
        runner = till.runner(till.agent(PAY, says("a"), says("b"), says("c"), tools=tools))
        [call] = asked_of(await till.say(runner, "go"))
        for reply in (yes(call), no(call), yes(call)):
            await till.say(runner, reply)

    asyncio.run(go())
    assert till.sent == [("7", 10)]
    assert len(till.rows(EffectCommitted)) == 1
    till.verified()


def test_f12_a_no_that_was_given_is_no_yes_later(till: Till) -> None:
    """F12: resume on what is finished must not turn a denial into an approval."""

    async def go() -> None:
        await till.session()
        tools = [FunctionTool(till.pay, require_confirmation=True)]
        runner = till.runner(till.agent(PAY, says("a"), says("b"), says("c"), tools=tools))
        [call] = asked_of(await till.say(runner, "go"))
        for reply in (no(call), yes(call)):
            await till.say(runner, reply)

    asyncio.run(go())
    assert till.sent == []
    assert till.rows(EffectClaimed) == []
    till.verified()


def test_f13_an_approval_of_an_ambiguous_call_id_runs_neither_wrongly_nor_twice(
    till: Till,
) -> None:
    """F13: two waiting calls share one id; what is approved is refund{1}, never delete{2}."""

    def refund(order: str) -> str:
        """Refunds."""
        till.sent.append(("refund", order))
        return order

    def delete(order: str) -> str:
        """Deletes."""
        till.sent.append(("delete", order))
        return order

    parts = [
        types.Part(function_call=types.FunctionCall(id="dup", name=name, args={"order": order}))
        for name, order in (("refund", "1"), ("delete", "2"))
    ]

    async def go() -> None:
        await till.session()
        tools = [FunctionTool(one, require_confirmation=True) for one in (refund, delete)]
        runner = till.runner(till.agent(parts, says("a"), says("b"), tools=tools))
        call = asked_of(await till.say(runner, "go"))[0]
        with suppress(ValueError):  # the newest framework refuses it by itself
            await till.say(runner, yes(call))

    asyncio.run(go())
    assert till.sent in ([], [("refund", "1")])


def test_f14_an_approved_call_whose_reply_was_lost_is_not_made_again(till: Till) -> None:
    """F14: the approval is no pass for a second effect."""

    def ring(order: str) -> str:
        """Rings."""
        till.sent.append(order)
        raise TimeoutError("no answer")

    async def go() -> list[Any]:
        await till.session()
        asked = calls(("ring", {"order": "7"}))
        tools = [FunctionTool(ring, require_confirmation=True)]
        lines = (asked, says("a"), asked, says("b"), says("c"))
        runner = till.runner(till.agent(*lines, tools=tools))
        [call] = asked_of(await till.say(runner, "go"))
        first = await till.say(runner, yes(call))
        assert told(first, "ring")[0]["backstop"] == "in_doubt"
        again = await till.say(runner, "once more")
        return await till.say(runner, yes(asked_of(again)[0]))

    events = asyncio.run(go())
    assert till.sent == ["7"]
    assert told(events, "ring")[0]["backstop"] == "in_doubt"


def test_f17_a_retry_that_words_a_field_otherwise_pays_once(till: Till) -> None:
    """F17: identity is the order; another amount or note is a conflict, never a new effect."""
    other = calls(("pay", {"order": "7", "amount": 11}))
    events = till.chat(till.agent(PAY, says("a"), other, says("b")), "pay", "again")
    assert till.sent == [("7", 10)]
    assert told(events, "pay")[1]["backstop"] == "conflict"
    assert told(events, "pay")[1]["done"] == {"order": "7", "amount": 10}
    till.verified()


def test_f18_the_same_call_in_the_next_breath_gets_the_recorded_result(till: Till) -> None:
    """F18: same process, same arguments, the first already done; and both in one breath."""
    events = till.chat(till.agent(PAY, [*PAY, *PAY], says("done")), "pay")
    assert till.sent == [("7", 10)]
    assert told(events, "pay") == [{"paid": "7", "amount": 10}] * 3
    till.verified()


def lost(till: Till, error: Exception) -> FunctionTool:
    def ring(order: str, key: str = "") -> str:
        """Rings."""
        till.sent.append((order, key))
        if len(till.sent) == 1:
            raise error
        return order

    return FunctionTool(ring)


RING = calls(("ring", {"order": "7"}))


@pytest.mark.parametrize(
    ("error", "case"),
    [
        (ConnectionResetError("the socket dropped"), "F20"),
        (RuntimeError("session terminated"), "F21"),
        (ValueError("invalid parameter"), "F22"),
    ],
    ids=["f20", "f21", "f22"],
)
def test_f20_f21_f22_an_error_that_nobody_vouches_for_is_a_doubt_and_no_retry(
    till: Till, error: Exception, case: str
) -> None:
    """F20, F21, F22: whatever the error says, the other side may have acted."""
    root = till.agent(RING, RING, says("a"), RING, says("b"), tools=[lost(till, error)])
    events = till.chat(root, "ring", "ring again")
    assert till.sent == [("7", "")], case
    assert [one["backstop"] for one in told(events, "ring")] == ["in_doubt"] * 3
    assert str(error) in told(events, "ring")[0]["reason"]
    assert len(till.rows(EffectInDoubt)) == 1


def test_f22_a_declared_error_is_a_failure_for_now_and_may_be_tried_again(
    tmp_path: Path,
) -> None:
    """F22: the key is free only where the tool says that nothing happens on this error."""
    config = (
        "version: 1\nagents:\n  till:\n    path: agent\n    store: sqlite:///{store}\n"
        "    tools: {{ring: {{identity: [order], no_effect_on: [ValueError]}}}}\n"
    )
    till = Till(folder=tmp_path, config=config)

    async def go() -> None:
        await till.session()
        runner = till.runner(
            till.agent(RING, RING, says("a"), tools=[lost(till, ValueError("invalid"))])
        )
        with pytest.raises(ValueError, match="invalid"):
            await till.say(runner, "ring")
        await till.say(runner, "ring again")

    asyncio.run(go())
    assert till.sent == [("7", ""), ("7", "")]
    (failed,) = till.rows(EffectFailed)
    assert (failed.final, failed.error.type) == (False, "ValueError")
    assert len(till.rows(EffectCommitted)) == 1
    till.verified()


def test_f22_a_call_that_the_framework_turns_away_is_no_effect(till: Till) -> None:
    """F22: an argument is missing; the corrected call is made, and is in conflict with nothing."""
    short = calls(("pay", {"order": "7"}))
    events = till.chat(till.agent(short, short, PAY, says("done")), "pay")
    assert till.sent == [("7", 10)]
    assert "amount" in told(events, "pay")[0]["error"]
    assert told(events, "pay")[2] == {"paid": "7", "amount": 10}
    assert [row.error.type for row in till.rows(EffectFailed)] == ["CallTurnedAway"] * 2
    till.verified()


def test_f20_a_tool_that_takes_our_key_is_tried_again_under_the_same_key(tmp_path: Path) -> None:
    """F20: only a declared tool is retried by itself; the provider acts once on the key."""
    config = (
        "version: 1\nagents:\n  till:\n    path: agent\n    store: sqlite:///{store}\n"
        "    tools: {{ring: {{identity: [order], keyed: {{param: key, retention: 1d}}}}}}\n"
    )
    till = Till(folder=tmp_path, config=config)
    tool = lost(till, ConnectionResetError("dropped"))
    root = till.agent(RING, says("a"), RING, says("b"), tools=[tool])
    events = till.chat(root, "ring", "again")
    assert [order for order, _ in till.sent] == ["7", "7"]
    (claimed, again) = till.rows(EffectClaimed)
    assert {key for _, key in till.sent} == {claimed.key} == {again.key}
    assert told(events, "ring")[1] == {"result": "7"}
    till.verified()


def test_f31_a_read_is_made_again_and_an_effect_is_not(till: Till) -> None:
    """F31: the same call steps later; nobody caches what only looks."""
    both = calls(("look", {"order": "7"}), ("pay", {"order": "7", "amount": 10}))
    till.chat(till.agent(both, says("a"), both, says("b")), "go", "go on")
    assert len(till.rows(ToolRead)) == 2
    assert till.sent == [("7", 10)]


def test_f35_a_repaired_workflow_that_begins_anew_opens_no_second_ticket(till: Till) -> None:
    """F35: step 2 failed, somebody mended it and runs it all again from the start."""
    ticket = calls(("pay", {"order": "7", "amount": 10}))

    def broken(order: str) -> str:
        """Looks."""
        raise KeyError(order)

    look = FunctionTool(broken)
    look.name = "look"
    failing = till.agent(ticket, calls(("look", {"order": "7"})), tools=[till.pay, look])
    mended = till.agent(ticket, calls(("look", {"order": "7"})), says("done"))

    async def go() -> list[Any]:
        await till.session()
        with pytest.raises(KeyError):
            await till.say(till.runner(failing), "go")
        return await till.say(till.runner(mended), "go")

    events = asyncio.run(go())
    assert till.sent == [("7", 10)]
    assert told(events, "pay") == [{"paid": "7", "amount": 10}]
    assert told(events, "look") == [{"order": "7"}]


# --- owners that die, hang, or lose their store: on a store that can be told so ---
