"""The driver's conversation: order, ends, faults, and the passes over a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backstop.adapters.scripted import ScriptedSandbox, ask, effect, tool
from backstop.core.events import StepStarted
from backstop.core.intents import Answered, Pass
from backstop.replay.service import Plan, Replay, replay
from tests.dsl import scenario

Asks = Generator[Any, Any, None]
AGENT = Path("agent")

TEXT = """
tool pay identity vendor
tool mail identity to
tool check reads
run r1
step s1
commit pay{vendor: acme, amount: 1} -> {ok: true}
advance
step s2
read check{po: 7} -> free
commit mail{to: bo} -> {sent: true}
advance
close complete
"""


def replayed(script: Any, text: str = TEXT, **options: Any) -> Replay:
    """Replay a text on a script."""
    told = scenario(text)
    sandbox = ScriptedSandbox(script=script, **options)
    plan = Plan(
        header=told.header,
        events=told.events,
        ledger="d",
        candidate=AGENT,
        version="me",
        walls=False,
    )
    return replay(plan, sandbox)


def faithful(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
    """Does what `TEXT` holds."""
    if step["step"] == "s1":
        yield effect("pay", vendor="acme", amount=1)
    else:
        yield effect("check", po=7)
        yield effect("mail", to="bo")


def test_a_faithful_candidate_asks_for_just_what_is_recorded() -> None:
    done = replayed(faithful)
    assert [(i.step, i.tool, i.answered) for i in done.intents] == [
        ("s1", "pay", Answered.RECORDED),
        ("s2", "mail", Answered.RECORDED),
    ]
    (run,) = done.runs
    assert (run.steps_total, run.steps_assumed, run.drift, run.not_replayable) == (
        2,
        0,
        "none",
        None,
    )
    assert run.assumed_from is None


def test_parallel_calls_come_out_in_one_order_however_they_arrive() -> None:
    def shuffled(turn: int) -> Any:
        def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
            if step["step"] == "s1":
                asks = [effect("mail", to=f"u{n}") for n in range(6)]
                yield asks[turn:] + asks[:turn]

        return script

    assert replayed(shuffled(0)).intents == replayed(shuffled(4)).intents


def test_a3_a_call_that_was_added_is_extra_and_puts_nothing_else_in_doubt() -> None:
    """A3: N adds one mail at the end of step 1; a second pass shows that nothing hangs on it."""

    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        yield from faithful(step, state)
        if step["step"] == "s1":
            yield effect("invoice", number=1)

    done = replayed(script)
    extra = next(intent for intent in done.intents if intent.tool == "invoice")
    assert extra.answered is Answered.STAND_IN
    assert not any(intent.assumed for intent in done.intents)
    assert done.runs[0].steps_assumed == 0


def test_a3_only_what_depends_on_a_stand_in_is_assumed() -> None:
    """A3: a branch on a made-up answer and an argument that holds one are assumed, no more."""

    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        if step["step"] == "s1":
            ticket = (yield effect("ticket", about="x"))["result"]["result"]
            yield effect("pay", vendor="acme", amount=1)
            yield effect("mail", to="new", ref=ticket)
        elif state is not None:
            yield effect("mail", to="bo")

    done = replayed(script)
    told = {(i.tool, i.step): i for i in done.intents}
    assert len(done.intents) == 4
    assert told["mail", "s1"].assumed
    assert told["mail", "s1"].holes == ("/ref",)
    assert not told["pay", "s1"].assumed
    assert not told["mail", "s2"].assumed
    assert done.runs[0].steps_assumed == 1
    assert done.runs[0].assumed_from is None


def test_a3_what_only_one_pass_asks_for_is_assumed_on_either_side() -> None:
    """A3: truth values cannot be told apart by looks, so they differ between the passes."""
    text = (
        TEXT
        + """
    run r2
    step s1
    commit flag{lit: 1} -> true
    advance
    close complete
    """
    )

    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        yield from faithful(step, state)
        if step["step"] == "s1":
            on = (yield effect("flag", lit=2))["result"]
            yield effect("mail", to="yes" if on else "no")

    done = replayed(script, text)
    assumed = {bytes(i.args) for i in done.intents if i.assumed and i.run == "r1"}
    assert assumed == {b'{"to":"yes"}', b'{"to":"no"}'}


def test_s2_steps_of_an_open_run_are_also_replayed_alone() -> None:
    """S2: v1 writes `poId`, N reads `po_id`: the full replay matches, the handover orders again."""
    text = """
    tool order identity vendor
    run r1
    step s1
    commit order{vendor: acme} -> {po: 7}
    advance
    step s2
    end done
    """

    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        if "po_id" not in state:
            yield effect("order", vendor="acme")
            state["po_id"] = 7

    done = replayed(script, text)
    assert [(i.replay, i.step) for i in done.intents] == [
        (Pass.FULL, "s1"),
        (Pass.HANDOVER, "s1"),
        (Pass.HANDOVER, "s2"),
    ]
    closed = replayed(script, text + "close complete\n")
    assert [(i.replay, i.step) for i in closed.intents] == [(Pass.FULL, "s1")]


def test_s4_an_approval_goes_to_the_call_of_the_replay() -> None:
    """S4: the recorded id in the trigger is told as the one that the candidate gave the call."""
    told = scenario(
        """
        tool approve identity po
        run r1
        step s1
        commit approve{po: 7} -> {status: pending}
        advance
        step s2
        end done
        close complete
        """
    )
    content = {"parts": [{"function_response": {"id": "call-1", "name": "approve"}}]}
    message = msgspec.Raw(msgspec.json.encode(content))
    events = [
        msgspec.structs.replace(event, message=message)
        if isinstance(event, StepStarted) and event.step == "s2"
        else event
        for event in told.events
    ]
    told = dataclasses.replace(told, events=events)
    seen: list[str] = []

    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        if step["step"] == "s1":
            yield {**effect("approve", po=7), "call": "adk-9"}
            state["$pending"] = [{"id": "adk-9", "name": "approve"}]
        else:
            seen.append(step["message"]["parts"][0]["function_response"]["id"])

    plan = Plan(header=told.header, events=told.events, ledger="d", candidate=AGENT)
    replay(plan, ScriptedSandbox(script=script))
    assert seen == ["adk-9"]


def test_a5_the_control_run_vouches_for_rows_without_digests() -> None:
    """A5: unknown alone, same with the base's requests, drifted if they differ."""
    text = TEXT.replace("step s2\n", "step s2\nmodel check\n")

    def asking(contents: str) -> Any:
        def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
            if step["step"] == "s2":
                yield ask("desk", contents=contents)
            yield from faithful(step, state)

        return script

    told = scenario(text)

    def run(script: Any, **options: Any) -> Replay:
        plan = Plan(header=told.header, events=told.events, ledger="d", candidate=AGENT, **options)
        return replay(plan, ScriptedSandbox(script=script))

    base = run(asking("as ever"), is_control=True)
    assert base.runs[0].drift == "none"
    unsupported = run(asking("as ever")).runs[0]
    assert (unsupported.drift, unsupported.assumed_from, unsupported.steps_assumed) == (
        "unknown",
        1,
        1,
    )
    assert run(asking("as ever"), control=base.requests).runs[0].drift == "none"
    drifted = run(asking("reworded"), control=base.requests).runs[0]
    assert (drifted.drift, drifted.drifted) == ("drifted", {"desk": ("contents",)})


def test_runs_go_to_several_processes_and_come_out_the_same() -> None:
    text = TEXT + "".join(
        f"""
        run x{n}
        step s1
        commit pay{{vendor: v{n}, amount: 1}}
        advance
        close complete
        """
        for n in range(20)
    )

    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        yield from faithful(step, state)

    told = scenario(text)
    counted: list[tuple[int, int]] = []
    results = []
    for workers in (1, 4):
        sandbox = ScriptedSandbox(script=script)
        plan = Plan(
            header=told.header,
            events=told.events,
            ledger="d",
            candidate=AGENT,
            workers=workers,
        )
        results.append(
            replay(plan, sandbox, progress=lambda done, total: counted.append((done, total)))
        )
        assert len(sandbox.started) <= workers
    one, many = results
    assert (one.intents, one.runs, one.header) == (many.intents, many.runs, many.header)
    assert counted[20] == counted[-1] == (21, 21)


def test_a_tool_is_guarded_if_it_is_wherever_it_is_offered() -> None:
    done = replayed(
        faithful,
        tools=[
            tool("pay", guarded=True),
            {**tool("mail", guarded=True), "agent": "a"},
            {**tool("mail"), "agent": "b"},
        ],
    )
    assert done.header.guarded == ("pay",)
    assert set(done.header.declarations) == {"pay", "mail", "check"}


def test_d6_open_runs_go_first_and_what_time_left_out_is_named() -> None:
    """D6: open runs, then the newest; those that were left out count against coverage."""
    text = (
        TEXT
        + """
    run r2
    step s1
    commit pay{vendor: acme, amount: 1}
    advance
    close complete
    run r3
    step s1
    commit pay{vendor: acme, amount: 1}
    advance
    """
    )
    told = scenario(text)
    done: list[int] = []
    plan = Plan(header=told.header, events=told.events, ledger="d", candidate=AGENT)
    found = replay(
        plan,
        ScriptedSandbox(script=faithful),
        progress=lambda count, _: done.append(count),
        is_over=lambda: len(done) == 2,
    )
    left = {run.run: run.not_replayable for run in found.runs}
    assert list(left) == ["r1", "r2", "r3"]
    assert left["r2"] is None
    assert left["r3"] is None
    assert left["r1"] == "left out, since the time for this replay was over"


def test_an_interruption_ends_the_replay_after_the_runs_at_hand() -> None:
    text = (
        TEXT
        + """
    run r2
    step s1
    commit pay{vendor: acme, amount: 1}
    advance
    close complete
    """
    )
    seen: list[str] = []

    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        seen.append(step["step"])
        yield from faithful(step, state)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    told = scenario(text)
    plan = Plan(header=told.header, events=told.events, ledger="d", candidate=AGENT)
    with pytest.raises(KeyboardInterrupt):
        replay(plan, ScriptedSandbox(script=script), progress=interrupt)
    assert seen == ["s1"]
