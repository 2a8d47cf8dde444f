"""Recordings of ``adk conformance`` become ledgers; their YAML is read strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from backstop.adapters.importing.conformance import read_recordings
from backstop.adapters.importing.conversation import Conversation
from backstop.core.events import ModelAnswered, RunClosed, StepStarted, ToolRead
from tests.unit.adapters.importing.telling import (
    AT,
    TOOLS,
    booked,
    effects,
    gaps,
    refusal,
    withstands,
)


def read(document: Any) -> list[Conversation]:
    text = document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False)
    return [read_recordings(text.encode(), name="r.yaml", run="case", tools=TOOLS, at=AT)]


def call(tool: str, name: str, **args: Any) -> dict[str, Any]:
    return {"function_call": {"id": name, "args": args, "name": tool}}


def model(
    *parts: dict[str, Any], agent: str = "till", step: int = 0, seen: Any = None, **more: Any
) -> dict[str, Any]:
    words = {"parts": [{"text": f"words {step}"}], "role": "user"}
    return {
        "user_message_index": step,
        "agent_name": agent,
        "llm_recording": {
            "llm_request": {"model": "m", "contents": seen or [words]},
            "llm_responses": [{"content": {"parts": list(parts), "role": "model"}, **more}],
        },
    }


def tool(tool: str, name: str, result: Any, agent: str = "till", **args: Any) -> dict[str, Any]:
    return {
        "user_message_index": 0,
        "agent_name": agent,
        "tool_recording": {
            "tool_call": {"id": name, "args": args, "name": tool},
            "tool_response": {"id": name, "name": tool, "response": result},
        },
    }


def recordings(*them: dict[str, Any]) -> dict[str, Any]:
    return {"recordings": list(them)}


PAID = recordings(
    model(call("look", "a", order="7"), call("pay", "b", order="7")),
    tool("look", "a", {"open": True, "on": "2024-05-20"}, order="7"),
    tool("pay", "b", {"result": "no"}, order="7"),
    model({"text": "Done"}),
    model({"text": "Bye"}, step=1),
)


def test_a_recording_is_a_run_and_each_message_of_the_user_a_step() -> None:
    header, events = booked(read(PAID))
    assert effects(events) == [("pay", "b", "committed")]
    (seen,) = [event for event in events if isinstance(event, ToolRead)]
    assert bytes(seen.result) == b'{"open":true,"on":"2024-05-20"}'
    steps = [json.loads(bytes(one.message)) for one in events if isinstance(one, StepStarted)]
    assert [one["parts"] for one in steps] == [[{"text": "words 0"}], [{"text": "words 1"}]]
    assert isinstance(events[-1], RunClosed)
    assert gaps(header) == []


def test_a_call_without_a_recording_may_have_happened() -> None:
    """ADK leaves out what raised, and what had no answer yet."""
    header, events = booked(read(recordings(model(call("pay", "b", order="7")))))
    assert effects(events) == [("pay", "b", "open")]
    assert gaps(header) == [
        "run case: 1 of its calls have no recording: they raised, or had no answer yet"
    ]


def test_a04_parts_of_a_streamed_answer_are_no_effects() -> None:
    """A04: the part and the whole carry different ids."""
    given = model(call("pay", "f1", order="7"))
    whole = given["llm_recording"]["llm_responses"][0]
    part = {"content": {"parts": [call("pay", "p1", order="7")]}, "partial": True}
    given["llm_recording"]["llm_responses"] = [part, whole]
    _, events = booked(read(recordings(given, tool("pay", "f1", {"result": "ok"}, order="7"))))
    assert effects(events) == [("pay", "f1", "committed")]
    assert len([event for event in events if isinstance(event, ModelAnswered)]) == 1


def test_i1_an_id_that_two_calls_share_joins_the_nearest_earlier_call() -> None:
    """I1: the first call under that id was never answered."""
    _, events = booked(
        read(
            recordings(
                model(call("pay", "x", order="7")),
                model(call("pay", "x", order="8")),
                tool("pay", "x", {"result": "ok"}, order="8"),
            )
        )
    )
    assert effects(events) == [("pay", "x", "open"), ("pay", "x", "committed")]


def test_an_agent_that_was_called_as_a_tool_is_no_effect_and_its_own_calls_are() -> None:
    _, events = booked(
        read(
            recordings(
                model(call("clerk", "a", request="pay 7")),
                model(call("pay", "b", order="7"), agent="clerk"),
                tool("pay", "b", {"result": "ok"}, agent="clerk", order="7"),
                model({"text": "paid"}, agent="clerk"),
                tool("clerk", "a", {"result": "paid"}, request="pay 7"),
                model(call("transfer_to_agent", "c", agent_name="clerk")),
                tool("transfer_to_agent", "c", {"result": None}, agent_name="clerk"),
            )
        )
    )
    assert effects(events) == [("pay", "b", "committed")]
    steering = [one.tool for one in events if isinstance(one, ToolRead) and one.steering]
    assert steering == ["clerk", "transfer_to_agent"]


def test_what_no_model_asked_for_was_asked_for_all_the_same() -> None:
    header, events = booked(read(recordings(tool("pay", "b", {"result": "ok"}, order="7"))))
    assert effects(events) == [("pay", "b", "committed")]
    assert gaps(header) == ["run case: what the user said is not told for 1 of its steps"]


def test_code_that_a_model_had_executed_is_a_gap() -> None:
    header, _ = booked(read(recordings(model({"executable_code": {"code": "pay()"}}))))
    assert gaps(header) == ["run case: 1 of its answers executed code; what that did is not told"]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("recordings: [", "import-not-yaml: r.yaml:"),
        ("a: \x00", "import-not-yaml: r.yaml"),
        ("recordings: !!python/object/apply:os.system [id]", "import-not-yaml: r.yaml:1: the tag"),
        ("a: &a [1]\nrecordings: *a", "import-not-yaml: r.yaml:2: an alias"),
        ("recordings:\n- a: 1\n  a: 2", "import-not-yaml: r.yaml:3: 'a' for the second time"),
        ("recordings:\n- a: no", "import-not-yaml: r.yaml:2: 'no', which may be text or bool"),
        ("a: 2024-05-20", "import-not-yaml: r.yaml:1: '2024-05-20', which may be text or timest"),
        ("a: 0x10", "import-not-yaml: r.yaml:1: '0x10', which may be text or int"),
        ("a: .nan", "import-not-yaml: r.yaml:1: '.nan', which may be text or float"),
        ("a: 1\n---\na: 2", "import-not-yaml: r.yaml:3: a second document"),
        ("? [a]\n: 1", "import-not-yaml: r.yaml:1: a key that is no plain text"),
        ("[" * 900, "import-not-yaml: r.yaml:1: a value nested more than"),
        ("a: 1" + "0" * 5000, "import-not-yaml: r.yaml:1: a number of more than"),
        ('"a\\ud800": 1', "import-not-yaml: r.yaml"),
        ("", "import-shape: r.yaml: no list under 'recordings'"),
        (recordings(), "import-shape: r.yaml: no list under 'recordings'"),
        (recordings({"user_message_index": 0}), "import-shape: r.yaml, recording 0: neither"),
        (
            recordings(model(step=1), model(step=0)),
            "import-shape: r.yaml, recording 1: it is of user message 0, after one of message 1",
        ),
        (
            recordings(model({"function_call": {"name": "pay", "args": []}})),
            "import-shape: r.yaml, recording 0: its args is no object",
        ),
    ],
)
def test_what_is_no_recording_is_refused_in_a_line_that_says_where(document: Any, why: str) -> None:
    assert refusal(lambda: read(document)).startswith(why)


def test_numbers_keep_every_digit() -> None:
    text = yaml.safe_dump(PAID).replace("'no'", "12345678901234567890.10")
    _, events = booked(read(text))
    assert b"12345678901234567890.10" in b"".join(
        bytes(event.result) for event in events if hasattr(event, "result")
    )


def test_whatever_is_of_another_kind_is_imported_or_refused() -> None:
    # JSON is YAML too, and is written faster.
    document = recordings(*PAID["recordings"][:3])
    imported, refused = withstands(lambda damaged: read(json.dumps(damaged)), document)
    assert imported
    assert refused
