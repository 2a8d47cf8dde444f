"""The session before a step, told from the ledger's rows as the framework holds it (S2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from backstop.core.events import Event, ModelAnswered, StepStarted
from backstop.core.history import Row
from backstop.core.runs import recorded_runs
from backstop.replay.handover import session_before
from tests.dsl import raw, scenario

TEXT = """
tool check reads
run r1
step s1
model check pay pay
read check{po: 7} -> free
commit pay{vendor: acme} -> {ok: true}
fail pay{vendor: bolt}
model
advance
step s2
model
"""


def told(text: str, answers: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The session before s2, with these model answers."""
    left = list(answers)

    def filled(event: Event) -> Event:
        if isinstance(event, ModelAnswered) and left:
            response = raw({"content": {"role": "model", "parts": left.pop(0)}})
            return msgspec.structs.replace(event, response=response)
        if isinstance(event, StepStarted):
            message = raw({"role": "user", "parts": [{"text": event.step}]})
            return msgspec.structs.replace(event, message=message)
        return event

    found = scenario(text)
    found = replace(found, events=[filled(event) for event in found.events])
    run = recorded_runs(found.events)[0]["r1"]
    session: list[Any] = list(session_before(run, run.steps[-1], speaker="desk"))
    return session


def call(name: str, **args: object) -> dict[str, Any]:
    """A call in a model's answer."""
    return {"function_call": {"name": name, "args": args}}


def test_s2_messages_answers_and_results_stand_in_the_order_of_the_framework() -> None:
    """S2: calls get their recorded ids, results stand in the order of the calls."""
    calls = [call("pay", vendor="acme"), call("pay", vendor="bolt"), call("check", po=7)]
    events = told(TEXT, [calls, [{"text": "done"}]])
    assert [event["author"] for event in events] == ["user", "desk", "desk", "desk"]
    asked = [part["function_call"]["id"] for part in events[1]["content"]["parts"]]
    assert asked == ["call-2", "call-3", "call-1"]
    results = [part["function_response"] for part in events[2]["content"]["parts"]]
    assert [(r["id"], r["response"]) for r in results] == [
        ("call-2", {"ok": True}),
        ("call-3", {"error": ""}),
        ("call-1", {"result": "free"}),
    ]
    assert events[3]["content"]["parts"] == [{"text": "done"}]


def test_s2_a_call_without_an_answer_has_none_in_the_session() -> None:
    """S2: open or never made: the model was told nothing."""
    text = TEXT.replace("commit pay{vendor: acme} -> {ok: true}", "claim pay{vendor: acme}")
    events = told(text, [[call("pay", vendor="acme"), call("transfer_to_agent")], []])
    kinds = [next(iter(part)) for event in events for part in event["content"]["parts"]]
    assert kinds == ["text", "function_call", "function_call"]


def test_s2_a_try_that_was_begun_anew_is_no_part_of_the_session() -> None:
    """S1, S2: of two attempts the one that was followed is told."""
    text = """
    run r1
    step s1
    model
    attempt
    model
    advance
    step s2
    """
    events = told(text, [[{"text": "first"}], [{"text": "second"}]])
    assert [event["content"]["parts"][0]["text"] for event in events] == ["s1", "second"]


LONG = "run r1\n" + "".join(
    f"step s{n}\nmodel {'pay' if n < 3 else 'mail'}\n"
    f"{'claim' if n == 2 else 'commit'} {'pay' if n < 3 else 'mail'}{{n: {n}}}"
    f"{'' if n == 2 else ' -> ok'}\nmodel\n{'' if n == 2 else 'advance'}\n"
    for n in range(1, 8)
)


def steps_before(recent: int | None, message: str = "tick") -> list[str]:
    """The steps that the bounded session before s7 tells of."""
    run = recorded_runs(scenario(LONG).events)[0]["r1"]
    last = replace(run.steps[-1], message=raw({"parts": [{"text": message}]}))
    told = session_before(run, last, speaker="desk", recent=recent)
    return list(dict.fromkeys(str(event["invocation_id"]) for event in told))


def test_s2_a_bounded_session_is_its_end_and_what_is_still_open() -> None:
    """S2: as `Views` bounds the session of a full pass."""
    assert len(steps_before(None)) == 6
    assert steps_before(4) == ["recorded-s2", "recorded-s5", "recorded-s6"]


def test_s2_a_call_that_is_answered_from_outside_stays_in_sight() -> None:
    """S2, S4."""
    run = recorded_runs(scenario(LONG).events)[0]["r1"]
    (made,) = run.steps[0].calls
    assert isinstance(made, Row)
    assert "recorded-s1" in steps_before(4, message=made.call or f"call-{made.index}")
