"""ADK's evaluation sets become ledgers: expectations are no history."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from backstop.adapters.importing.contents import Tools
from backstop.adapters.importing.evalsets import read_evalset
from backstop.core.events import EffectCommitted, ModelAnswered, RunClosed, RunOpened, StepStarted
from tests.unit.adapters.importing.telling import (
    AT,
    TOOLS,
    booked,
    effects,
    gaps,
    refusal,
    withstands,
)


def read(document: Any, name: str = "desk.evalset.json") -> Any:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return read_evalset(data, name=name, tools=TOOLS, at=AT)


def words(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text, "thought": None}]}


def asks(tool: str, name: str | None = None, **args: Any) -> dict[str, Any]:
    return {"id": name, "name": tool, "args": args}


def case(*turns: dict[str, Any], name: str = "c1", **more: Any) -> dict[str, Any]:
    return {"evalId": name, "conversation": list(turns), **more}


def turn(data: dict[str, Any] | None = None, said: str = "Pay 7", end: str = "Done") -> Any:
    return {
        "invocationId": "i1",
        "userContent": words(said),
        "intermediateData": data,
        "finalResponse": words(end, "model"),
        "creationTimestamp": 1747337309.2360387,
    }


def evalset(*cases: dict[str, Any]) -> dict[str, Any]:
    return {"evalSetId": "desk", "evalCases": list(cases)}


OLDEST = [
    {"query": "hi", "expected_tool_use": [], "reference": "Hello"},
    {
        "query": "Pay 7",
        "expected_tool_use": [{"tool_name": "pay", "tool_input": {"order": "7"}}],
        "reference": "Paid",
    },
]
ANSWERED = {
    "toolUses": [asks("pay", "c1", order="7"), asks("pay", "c2", order="8")],
    "toolResponses": [{"id": "c2", "name": "pay", "response": {"result": "ok"}}],
    "intermediateResponses": [],
}


def test_what_an_evaluation_expects_was_asked_for_and_never_happened() -> None:
    header, events = booked(read(OLDEST, "night/desk.test.json"))
    assert effects(events) == [("pay", "", "open")]
    assert not [event for event in events if isinstance(event, EffectCommitted | RunClosed)]
    (gap,) = gaps(header)
    assert gap.startswith("run desk: 1 of its tool uses are what an evaluation expects")


def test_an_expected_tool_of_which_nobody_knows_is_named_with_its_case() -> None:
    """It may be gone: who reads it can declare it, or take the case out."""
    used = [
        asks("paid_by_hand", n=1),
        *(asks(f"tool_{number}", n=1) for number in range(6)),
        asks("look"),
    ]
    header, _ = booked(read(evalset(case(turn({"toolUses": used}), name="weekly"))))
    expected, unknown = gaps(header)
    assert expected.startswith("run weekly: 8 of its tool uses are what an evaluation expects")
    assert expected.endswith("(look, paid_by_hand, tool_0, tool_1, tool_2 and 3 more)")
    assert unknown.startswith("run weekly: it expects paid_by_hand, tool_0, tool_1, tool_2, ")


def test_where_nothing_is_declared_no_tool_is_unknown() -> None:
    data = json.dumps(evalset(case(turn({"toolUses": [asks("any", n=1)]})))).encode()
    told = read_evalset(data, name="a.evalset.json", tools=Tools(), at=AT)
    (gap,) = gaps(booked(told)[0])
    assert gap.endswith("(any)")


def test_a_conversation_without_tools_is_whole() -> None:
    header, events = booked(read(OLDEST[:1]))
    assert gaps(header) == []
    assert isinstance(events[-1], RunClosed)


def test_a_tool_use_with_its_answer_happened_and_one_without_did_not() -> None:
    header, events = booked(read(evalset(case(turn(ANSWERED)))))
    assert effects(events) == [("pay", "c1", "open"), ("pay", "c2", "committed")]
    assert "1 of its tool uses" in gaps(header)[0]


def test_each_old_case_is_a_run_with_its_session_and_each_query_a_step() -> None:
    old = [
        {
            "name": name,
            "data": OLDEST,
            "initial_session": {"state": {"n": 1}, "user_id": "u", "app_name": "a"},
        }
        for name in ("a", "b")
    ]
    _, events = booked(read(old))
    opened = [event for event in events if isinstance(event, RunOpened)]
    assert [(one.run, one.user, bytes(one.state)) for one in opened] == [
        ("a", "u", b'{"n":1}'),
        ("b", "u", b'{"n":1}'),
    ]
    steps = [(one.run, one.step) for one in events if isinstance(one, StepStarted)]
    assert steps == [("a", "s0"), ("a", "s1"), ("b", "s0"), ("b", "s1")]


@pytest.mark.parametrize("camel", [True, False])
def test_events_of_an_invocation_tell_who_spoke_and_what_was_answered(camel: bool) -> None:
    call, response = (
        ("functionCall", "functionResponse") if camel else ("function_call", "function_response")
    )
    data = {
        "invocation_events": [
            {
                "author": "desk",
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "One moment"},
                        {call: asks("look", "c1", order="7")},
                        {call: asks("pay", "c2", order="7")},
                    ],
                },
            },
            {
                "author": "desk",
                "content": {
                    "role": "user",
                    "parts": [
                        {response: {"id": "c1", "name": "look", "response": {"open": True}}},
                        {response: {"id": "c2", "name": "pay", "response": {"result": "ok"}}},
                    ],
                },
            },
            {"author": "desk", "content": None},
        ]
    }
    header, events = booked(read(evalset(case(turn(data)))))
    assert gaps(header) == []
    assert effects(events) == [("pay", "c2", "committed")]
    said = [event for event in events if isinstance(event, ModelAnswered)]
    assert [one.agent for one in said] == ["desk", "desk"]
    last = msgspec.json.decode(said[-1].response)
    assert last["content"]["parts"] == [{"text": "Done"}]
    assert events[0].at == "2025-05-15T19:28:29.236038Z"


def test_a_call_that_waits_stands_among_the_events_and_in_the_last_words_and_is_one_call() -> None:
    waiting = {"role": "model", "parts": [{"function_call": asks("pay", "c1", order="7")}]}
    data = {"invocation_events": [{"author": "desk", "content": waiting}]}
    given = {**turn(data), "finalResponse": waiting}
    later = {
        "userContent": {
            "parts": [
                {"function_response": {"id": "c1", "name": "pay", "response": {"result": "ok"}}}
            ]
        },
        "finalResponse": words("Done", "model"),
    }
    _, events = booked(read(evalset(case(given, later))))
    assert effects(events) == [("pay", "c1", "committed")]


def test_i1_an_id_that_two_calls_share_joins_each_answer_to_its_own_call() -> None:
    """I1: the nearest earlier unanswered call."""
    data = {
        "toolUses": [asks("pay", "x", order="7"), asks("pay", "x", order="8")],
        "toolResponses": [
            {"id": "x", "name": "pay", "response": {"result": n}} for n in ("one", "two")
        ],
    }
    _, events = booked(read(evalset(case(turn(data)))))
    results = [bytes(one.result) for one in events if isinstance(one, EffectCommitted)]
    assert results == [b'{"result":"one"}', b'{"result":"two"}']


def test_a_scenario_an_agent_as_a_tool_and_a_sub_agents_words_are_gaps() -> None:
    scenario = {"eval_id": "s", "conversation_scenario": {"starting_prompt": "hi"}}
    data = {
        "tool_uses": [asks("clerk", request="pay 7")],
        "intermediate_responses": [["clerk", [{"text": "On it"}]]],
    }
    header, events = booked(read(evalset(scenario, case(turn(data)))))
    assert effects(events) == []
    assert [line.split(":")[0] for line in gaps(header)] == ["run s", "run c1", "run c1"]
    assert "simulated user" in gaps(header)[0]
    assert "clerk looks like an agent" in gaps(header)[1]
    assert "1 texts of sub-agents" in gaps(header)[2]


def test_code_that_a_model_had_executed_is_a_gap() -> None:
    content = {"role": "model", "parts": [{"executableCode": {"code": "pay()"}}]}
    data = {"invocation_events": [{"author": "desk", "content": content}]}
    header, _ = booked(read(evalset(case(turn(data)))))
    assert gaps(header) == ["run c1: it executed code; what that did is not told"]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"\x00\xff", "import-not-json: desk.evalset.json: not JSON"),
        (b'[{"query":"a","query":"b"}]', "import-not-json: desk.evalset.json: not JSON"),
        (b"[" * 5000 + b"]" * 5000, "import-not-json: desk.evalset.json: not JSON"),
        ({}, "import-shape: desk.evalset.json: neither"),
        ([], "import-shape: desk.evalset.json: neither"),
        (evalset(), "import-no-match: "),
        (evalset({"evalId": "a"}), "import-shape: desk.evalset.json: case 0: neither"),
        (
            evalset(case({"userContent": 1})),
            "import-shape: desk.evalset.json: case 0, invocation 0: 'user_content' is no object",
        ),
        (evalset(case(), case()), "import-run-twice: desk.evalset.json: case 1"),
        (
            [{"query": "a", "expected_tool_use": [{"tool_name": "pay", "tool_input": "7"}]}],
            "import-shape: desk.evalset.json: case 0, invocation 0: the arguments of pay",
        ),
        (
            evalset(case(creation_timestamp=1e300)),
            "import-shape: desk.evalset.json: case 0: 'creation_timestamp'",
        ),
    ],
)
def test_what_is_no_evalset_is_refused_in_a_line_that_says_where(document: Any, why: str) -> None:
    assert refusal(lambda: read(document)).startswith(why)


@pytest.mark.parametrize("document", [OLDEST, evalset(case(turn(ANSWERED)))])
def test_whatever_is_of_another_kind_is_imported_or_refused(document: Any) -> None:
    imported, refused = withstands(read, document)
    assert imported
    assert refused


def test_a_case_that_is_named_by_the_path_of_its_file_is_named_by_the_file() -> None:
    paths = ("/usr/somebody/desk/eval/desk.evalset.json", "C:\\eval\\desk.evalset.json")
    for path in (*paths, ""):
        [told] = read(evalset(case(turn(), name=path)))
        assert told.run == "desk"
    [told] = read(evalset(case(turn(), name="/usr/somebody/other.evalset.json")))
    assert told.run == "/usr/somebody/other.evalset.json"


def test_a_message_without_an_answer_is_a_gap() -> None:
    silent = {"user_content": words("What is the weather?")}
    [told] = read(evalset(case(turn(), silent, silent)))
    assert told.gaps == [
        "it holds no answer to 2 of its messages: nothing says what the agent does then"
    ]
    [control] = read(evalset(case(turn(), turn({"toolUses": [asks("pay", "c1", order="7")]}))))
    assert not any("no answer to" in gap for gap in control.gaps)
