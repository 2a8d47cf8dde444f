"""Spans of OTLP JSON files become ledgers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from backstop.adapters.importing.conversation import Conversation
from backstop.adapters.importing.otlp import read_traces
from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    ModelAnswered,
    RunClosed,
    RunOpened,
    StepStarted,
    ToolRead,
)
from tests.unit.adapters.importing.spanning import asked, export, invoked, ran, span, without
from tests.unit.adapters.importing.telling import TOOLS, booked, effects, gaps, refusal, withstands

Spans = list[dict[str, Any]]


def read(*documents: Any) -> Iterator[Conversation]:
    files = [
        (f"{n}.json", one if isinstance(one, bytes) else json.dumps(one).encode())
        for n, one in enumerate(documents)
    ]
    return read_traces(files, tools=TOOLS)


RESULT = "gen_ai.tool.call.result"
ARGUMENTS = "gen_ai.tool.call.arguments"
PAID = [
    invoked(0, 9),
    asked(1, ("look_0", "look", {"order": "7"}), ("pay_1", "pay", {"order": "7"})),
    ran("look", 2, 4, name="x"),
    ran("pay", 2.5, 3, name="y"),
    asked(5),
]


def test_spans_in_any_order_and_in_several_files_are_one_conversation() -> None:
    told = None
    for order in itertools.islice(itertools.permutations(PAID), 0, 120, 7):
        header, events = booked(read(export(*order[:2]), export(*order[1:])))
        assert gaps(header) == []
        told = told or events
        assert events == told
    assert told is not None
    assert effects(told) == [("pay", "y", "committed")]
    kinds = [type(event) for event in told]
    assert kinds == [
        RunOpened,
        StepStarted,
        ModelAnswered,
        EffectClaimed,
        EffectCommitted,
        ToolRead,
        ModelAnswered,
        RunClosed,
    ]
    assert {one.agent for one in told if isinstance(one, ModelAnswered)} == {"till"}


def test_a_collectors_file_holds_one_export_a_line() -> None:
    lines = b"\n".join(json.dumps(export(one)).encode() for one in PAID)
    assert booked(read(lines))[1] == booked(read(export(*PAID)))[1]
    bad = lines + b"\n{"
    assert refusal(lambda: read(bad)).startswith("import-not-json: 0.json:6: not JSON")


def test_older_attributes_of_adk_tell_the_same() -> None:
    old = [
        invoked(0, 9),
        span(
            "call_llm",
            1,
            2,
            own="m",
            parent="i",
            gcp__vertex__agent__llm_request=json.dumps(
                {"contents": [{"role": "user", "parts": [{"text": "Pay 7"}]}]}
            ),
            gcp__vertex__agent__llm_response=json.dumps(
                {"content": {"parts": [{"function_call": {"name": "pay", "args": {"order": "7"}}}]}}
            ),
        ),
        asked(1.2, own="inner", parent="m"),
        without(
            ran(
                "pay",
                3,
                4,
                gcp__vertex__agent__tool_call_args='{"order": "7"}',
                gcp__vertex__agent__tool_response='{"result": "ok"}',
            ),
            RESULT,
            ARGUMENTS,
        ),
        without(ran("(merged tools)", 4, 4), RESULT, ARGUMENTS),
    ]
    header, events = booked(read(export(*old)))
    assert effects(events) == [("pay", "a", "committed")]
    assert gaps(header) == []
    assert len([event for event in events if isinstance(event, ModelAnswered)]) == 1


def test_a_request_in_two_spans_is_told_by_the_one_that_tells_it() -> None:
    outer = span("call_llm", 1, 2, own="m", parent="i")
    inner = asked(1.2, ("p", "pay", {"order": "7"}), own="inner", parent="m")
    header, events = booked(read(export(invoked(0, 9), outer, inner, ran("pay", 3, 4))))
    assert effects(events) == [("pay", "a", "committed")]
    assert gaps(header) == []
    assert len([event for event in events if isinstance(event, ModelAnswered)]) == 1


def test_code_that_a_model_had_executed_is_a_gap() -> None:
    said = json.dumps({"content": {"parts": [{"executable_code": {"code": "pay()"}}]}})
    header, _ = booked(read(export(invoked(0, 9), asked(1, gcp__vertex__agent__llm_response=said))))
    assert gaps(header) == [
        "run c1: 1 of its models' answers executed code; what that did is not told"
    ]


@pytest.mark.parametrize(
    "given",
    [
        without(ran("pay", 2, 3), RESULT),
        ran("pay", 2, 3, status={"code": 2}, error__type="TimeoutError"),
        without(ran("pay", 2, 3, status={"code": "STATUS_CODE_ERROR"}), RESULT),
        ran("pay", 2, 3, gen_ai__tool__call__result='{"result": "<not specified>"}'),
        without(ran("pay", 2, 0), RESULT),
    ],
)
def test_a25_a_call_that_raised_or_has_no_result_may_have_happened(given: dict[str, Any]) -> None:
    """A25: never committed by a guess, never free either."""
    spans = [invoked(0, 9), asked(1, ("pay_0", "pay", {"order": "7"})), given]
    header, events = booked(read(export(*spans)))
    assert effects(events) == [("pay", "a", "open")]
    assert gaps(header) == [
        "run c1: 1 of its calls ended in an error or without an answer, and may have happened"
    ]


def test_a_read_that_gave_an_error_is_what_it_gave() -> None:
    spans = [invoked(0, 9), asked(1), ran("look", 2, 3, status={"code": 2})]
    header, events = booked(read(export(*spans)))
    assert gaps(header) == []
    assert [event.pending for event in events if isinstance(event, ToolRead)] == [False]


def test_a_call_that_a_model_asked_for_and_no_span_tells_of_is_a_gap() -> None:
    spans = [invoked(0, 9), asked(1, ("pay_0", "pay", {"order": "7"})), asked(3)]
    header, events = booked(read(export(*spans, ran("pay", 4, 5, name="late", order="8"))))
    assert effects(events) == [("pay", "pay_0", "open"), ("pay", "late", "committed")]
    assert "1 of its calls ended" in gaps(header)[0]


def test_where_contents_were_not_traced_tools_that_tell_theirs_are_told() -> None:
    silent = without(asked(1), "gen_ai.input.messages", "gen_ai.output.messages")
    header, events = booked(read(export(invoked(0, 9), silent, ran("pay", 2, 3))))
    assert effects(events) == [("pay", "a", "committed")]
    assert [line.split(": ", 1)[1] for line in gaps(header)] == [
        "1 of its models' answers are not in their spans",
        "1 of its steps do not tell what the user said",
    ]


def test_a_tool_whose_arguments_nobody_tells_is_refused() -> None:
    empty = without(
        ran(
            "pay",
            2,
            3,
            gcp__vertex__agent__tool_call_args="{}",
            gcp__vertex__agent__tool_response="{}",
        ),
        RESULT,
        ARGUMENTS,
    )
    line = refusal(lambda: read(export(invoked(0, 9), asked(1), empty)))
    assert line.startswith("import-no-content: 0.json: span 2: nothing says with which arguments")
    # A model may have said them.
    model = asked(1, ("pay_0", "pay", {"order": "7"}))
    assert effects(booked(read(export(invoked(0, 9), model, empty)))[1]) == [("pay", "a", "open")]


def test_i1_what_ran_belongs_to_the_call_with_its_id_then_with_its_arguments() -> None:
    """I1: ADK gives the call that its model asked for an id that its tool does not have."""
    calls = [
        ("p", "pay", {"order": "7"}),
        ("q", "pay", {"order": "8"}),
        ("r", "pay", {"order": "9"}),
    ]
    spans = [
        invoked(0, 9),
        asked(1, *calls),
        ran("pay", 2, 3, order="9", name="z"),
        ran("pay", 2.1, 3, order="8", name="y"),
        ran("pay", 2.2, 3, order="7b", name="p"),
    ]
    _, events = booked(read(export(*spans)))
    claims = [event for event in events if isinstance(event, EffectClaimed)]
    assert [(one.call, bytes(one.args)) for one in claims] == [
        ("p", b'{"order":"7b"}'),
        ("y", b'{"order":"8"}'),
        ("z", b'{"order":"9"}'),
    ]
    assert [outcome for *_, outcome in effects(events)] == ["committed"] * 3


def test_each_trace_of_a_conversation_is_a_step_and_each_conversation_a_run() -> None:
    def trace(name: str, start: float, conversation: str) -> Spans:
        return [
            {**one, "traceId": name}
            for one in (
                invoked(start, start + 5, conversation=conversation),
                asked(start + 1),
                ran("pay", start + 2, start + 3, order=name),
            )
        ]

    spans = [*trace("t2", 10, "c1"), *trace("t1", 0, "c1"), *trace("t3", 2, "c2")]
    header, events = booked(read(export(*spans)))
    steps = [(one.run, one.step) for one in events if isinstance(one, StepStarted)]
    assert steps == [("c1", "s0"), ("c1", "s1"), ("c2", "s0")]
    claimed = [bytes(one.args) for one in events if isinstance(one, EffectClaimed)]
    assert claimed == [b'{"order":"t1"}', b'{"order":"t2"}', b'{"order":"t3"}']
    assert gaps(header) == []


def test_a05_invocations_that_overlap_in_one_conversation_are_a_gap() -> None:
    """A05: nobody knows which saw what."""
    two = [
        {**one, "traceId": name}
        for name, start in (("t1", 0), ("t2", 1))
        for one in (invoked(start, start + 5), asked(start + 1), asked(start + 4))
    ]
    header, _ = booked(read(export(*two)))
    assert "began before the one before had ended" in gaps(header)[-1]


def test_an_agent_in_a_tool_is_no_effect_and_what_it_does_is_of_the_same_step() -> None:
    inner = [
        ran("clerk", 2, 8, own="tool"),
        invoked(3, 7, own="j", conversation="other", parent="tool"),
        asked(4, ("pay_0", "pay", {"order": "7"}), parent="j", gen_ai__agent__name="clerk"),
        ran("pay", 5, 6, parent="j"),
    ]
    _, events = booked(read(export(invoked(0, 9), asked(1), *inner)))
    assert effects(events) == [("pay", "a", "committed")]
    assert {event.run for event in events} == {"c1"}
    assert [one.tool for one in events if isinstance(one, ToolRead) and one.steering] == ["clerk"]


def test_a07_a_span_that_was_exported_twice_counts_once() -> None:
    """A07: by its id, and by nothing else."""
    assert booked(read(export(*PAID), export(*PAID)))[1] == booked(read(export(*PAID)))[1]
    other = {**PAID[3], "name": "execute_tool other"}
    assert refusal(lambda: read(export(*PAID), export(other))).startswith("import-span-twice: 1.")


def test_a_childs_clock_may_run_behind_its_parents() -> None:
    spans = [invoked(5, 9), asked(1, ("pay_0", "pay", {"order": "7"})), ran("pay", 2, 3)]
    header, events = booked(read(export(*spans)))
    assert effects(events) == [("pay", "a", "committed")]
    assert gaps(header) == []


def test_a_span_whose_parent_was_not_exported_is_a_gap() -> None:
    header, events = booked(read(export(*PAID[1:])))
    assert effects(events) == [("pay", "y", "committed")]
    assert [event.run for event in events if isinstance(event, RunOpened)] == ["t1"]
    assert gaps(header) == ["run t1: 4 of its spans lie in a span that was not exported"]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"\xff", "import-not-json: 0.json: not JSON"),
        (b'{"resourceSpans":[],"resourceSpans":[]}', "import-not-json: 0.json: not JSON"),
        (b"[" * 200_000, "import-not-json: 0.json: not JSON"),
        ([], "import-shape: 0.json: no list of objects under 'resourceSpans'"),
        ({"resource_spans": []}, "import-shape: 0.json: no list of objects"),
        (export(), "import-no-match: "),
        (export({"spanId": "a"}), "import-shape: 0.json: span 0 has no 'traceId'"),
        (
            export({"traceId": "t", "spanId": "s", "startTimeUnixNano": "9" * 5000}),
            "import-shape: 0.json: span 0: its 'startTimeUnixNano' is no time",
        ),
        (
            export(span("a", 0, 1, own="a", parent="b"), span("b", 0, 1, own="b", parent="a")),
            "import-shape: 0.json: span 0: span a is its own ancestor",
        ),
        (
            export({**PAID[0], "attributes": [*PAID[0]["attributes"], PAID[0]["attributes"][0]]}),
            "import-shape: 0.json: span 0: its attribute 'gen_ai.operation.name' stands twice",
        ),
        (
            export(ran("pay", 1, 2, gen_ai__tool__call__arguments='{"order": "7')),
            "import-no-content: 0.json: span 0: the arguments of pay are no JSON object (were they",
        ),
    ],
)
def test_what_are_no_spans_is_refused_in_a_line_that_says_where(document: Any, why: str) -> None:
    assert refusal(lambda: read(document)).startswith(why)


def test_whatever_is_of_another_kind_is_imported_or_refused() -> None:
    imported, refused = withstands(read, export(PAID[0], PAID[1], PAID[3]))
    assert imported
    assert refused


def test_a_long_chain_of_spans_is_read_without_recursion() -> None:
    chain = [
        span("x", 0, 1, own=str(n + 1), parent=str(n) if n else "") for n in range(2000, -1, -1)
    ]
    _, events = booked(read(export(*chain, ran("pay", 2, 3, parent="2001"))))
    assert effects(events) == [("pay", "a", "committed")]
