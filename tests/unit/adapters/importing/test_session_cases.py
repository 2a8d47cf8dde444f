"""Histories that went another way than a call and its answer, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from backstop.core.canon import parse
from backstop.core.events import (
    EffectCommitted,
    EffectFailed,
    ModelAnswered,
    RunClosed,
    StepStarted,
    ToolRead,
)
from tests.unit.adapters.importing.sessions import answer, call, event, told

ASKED = "This tool call requires confirmation, please approve or reject."
WANTED = {"requested_tool_confirmations": {"k": {"hint": "sure?", "confirmed": False}}}
QUESTION = event("desk", call("adk_request_confirmation", "q"), long_running_tool_ids=["q"])
YES = event("user", answer("adk_request_confirmation", "q", confirmed=True))


def test_a04_a_partial_event_after_the_final_one_is_nothing_either() -> None:
    """A04: late pieces of a stream, under ids of their own."""
    found = told(
        event("user", "pay 7"),
        event("desk", call("pay", "f", order=7)),
        event("desk", call("pay", "p", order=7), partial=True),
        event("desk", answer("pay", "f", paid=7)),
        event("desk", "Pa", partial=True),
        event("desk", "Paid."),
    )
    assert found.paid == [("pay", {"order": 7}, {"paid": 7})]
    assert len(found.of(ModelAnswered)) == 2
    assert found.gaps == []


@pytest.mark.parametrize(
    "piece",
    [
        {"name": "pay", "id": "c", "will_continue": True},
        {"name": "pay", "id": "c", "partial_args": [{"json_path": "$.order", "number_value": 7}]},
        {"id": "c", "partialArgs": [{"jsonPath": "$.order", "numberValue": 7}], "args": {}},
    ],
)
def test_a04_a_piece_of_a_call_whose_arguments_are_streamed_is_no_call(
    piece: dict[str, Any],
) -> None:
    """A04: an effect without its arguments would be another effect."""
    found = told(
        event("user", "pay 7"),
        event("desk", {"function_call": piece}),
        event("desk", call("pay", "c", order=7)),
        event("desk", answer("pay", "c", paid=7)),
    )
    assert found.paid == [("pay", {"order": 7}, {"paid": 7})]
    assert found.gaps == [
        "run one: it holds pieces of a call whose arguments were streamed, which are left out"
    ]


def test_a13_what_an_agent_did_again_after_a_confirmation_is_on_record_twice() -> None:
    """A13: the whole invocation ran again, reads included."""
    once = (
        event("desk", call("look", "l", order=7), call("pay", "p", order=7)),
        event("desk", answer("look", "l", due=7), answer("pay", "p", paid=7)),
    )
    found = told(event("user", "pay 7"), *once, QUESTION, YES, *once)
    assert [one.key for one in found.of(EffectCommitted)] == [
        found.of(EffectCommitted)[0].key,
    ] * 2
    assert len(found.of(ToolRead)) == 2
    assert found.gaps == []


@pytest.mark.parametrize(
    "live",
    [
        {"input_transcription": {"text": "pay 7", "finished": True}},
        {"outputTranscription": {"text": "Paid.", "finished": True}},
        {"live_session_id": "x"},
        {"live_session_resumption_update": {"new_handle": "x"}},
    ],
)
def test_a15_what_was_said_live_is_never_a_whole_history(live: dict[str, Any]) -> None:
    """A15: tool callbacks are not called there, and no replay can hold such a conversation."""
    found = told(event("user", "pay 7"), event("desk", "Paid.", **live))
    assert found.gaps == [
        "run one: it was held live, by voice or video: a replay cannot hold it again"
    ]


def test_a16_nothing_is_claimed_of_a_search_within_the_models_service() -> None:
    """A16: no callback sees it, and it changes nothing."""
    search = {"tool_call": {"id": "s", "tool_type": "GOOGLE_SEARCH_WEB", "args": {"q": "7"}}}
    results = {"tool_response": {"id": "s", "tool_type": "GOOGLE_SEARCH_WEB", "response": {}}}
    grounded: dict[str, Any] = {"grounding_metadata": {"web_search_queries": ["7"]}}
    found = told(event("user", "look"), event("desk", search, results, "It is 7.", **grounded))
    assert found.kinds == ["run_opened", "step_started", "model", "run_closed"]
    assert found.gaps == []


def test_a16_another_tool_within_the_models_service_is_told_of() -> None:
    """A16: what a tool of an unknown kind did there, nobody knows."""
    other = {"toolCall": {"id": "s", "tool_type": "MCP", "args": {"order": 7}}}
    found = told(event("user", "pay"), event("desk", other, "Done."))
    assert "it used MCP within the model's service" in found.gaps[0]


def test_a_long_running_call_that_is_answered_twice_happened_once() -> None:
    found = told(
        event("user", "pay 7"),
        event("desk", call("pay", "l", order=7), long_running_tool_ids=["l"]),
        event("desk", answer("pay", "l", ticket=1)),
        event("user", answer("pay", "l", approved=True)),
        event("user", answer("pay", "l", approved=True)),
        event("desk", "Paid."),
    )
    assert found.paid == [("pay", {"order": 7}, {"ticket": 1})]
    assert len(found.of(StepStarted)) == 3
    assert found.gaps == []


def test_a_call_that_was_confirmed_twice_and_answered_twice_is_told_of() -> None:
    paid = event("desk", answer("pay", "k", paid=7))
    found = told(
        event("user", "pay 7"),
        event("desk", call("pay", "k", order=7)),
        QUESTION,
        event("desk", answer("pay", "k", error=ASKED), actions=WANTED),
        *(YES, paid, YES, paid),
    )
    assert len(found.of(EffectCommitted)) == 1
    assert [one.final for one in found.of(EffectFailed)] == [False]
    assert (
        "answers a call of pay that is not in the record, or is answered already" in found.gaps[0]
    )


def test_a21_a_compaction_in_either_spelling_is_told_of() -> None:
    """A21: the framework's own summary takes the place of what was said."""
    words = {"role": "model", "parts": [{"text": "Order 7 was paid."}]}
    for actions in (
        {"compaction": {"start_timestamp": 1, "end_timestamp": 2, "compacted_content": words}},
        {"compaction": {"startTimestamp": 1, "endTimestamp": 2, "compactedContent": words}},
    ):
        found = told(event("user", "pay 7"), event("user", actions=actions), event("desk", "Paid."))
        assert len(found.of(StepStarted)) == 1
        assert "it was compacted" in found.gaps[0] or "was compacted" in found.gaps[0]


def test_a_session_that_ends_in_what_it_was_handed_is_not_over() -> None:
    found = told(event("user", "pay 7"))
    assert found.kinds == ["run_opened", "step_started"]
    over = told(event("user", "pay 7"), event("desk", "No."))
    assert len(over.of(RunClosed)) == 1


def test_agents_side_by_side_keep_their_branches() -> None:
    found = told(
        event("user", "go"),
        event("left", "l", branch="both.left"),
        event("right", "r", branch="both.right"),
        event("left", "l again", branch="both.left"),
    )
    assert [(one.agent, one.ordinal, one.branch) for one in found.of(ModelAnswered)] == [
        ("left", 0, "both.left"),
        ("right", 0, "both.right"),
        ("left", 1, "both.left"),
    ]
    assert found.gaps == []


def test_code_of_a_workflow_is_told_of_by_its_node() -> None:
    ran = {"path": "shop@1/prepare@1", "output_for": []}
    node: dict[str, Any] = {"output": "x", "node_info": ran}
    found = told(event("user", "go"), event("shop", **node), event("desk", "Done."))
    assert found.gaps == [
        "run one: code of its workflow ran (shop@1/prepare@1): what that did is not in its events"
    ]
    said = {"path": "shop@1/desk@1", "message_as_output": True}
    spoken: dict[str, Any] = {"output": "x", "node_info": said}
    assert told(event("user", "go"), event("desk", "x", **spoken)).gaps == []


def test_artifacts_thoughts_and_pictures_of_a_session_are_kept_or_told_of() -> None:
    found = told(
        event("user", "draw 7"),
        event(
            "desk",
            {"text": "Hm.", "thought": True},
            {**call("pay", "c", order=7), "thought_signature": "eA=="},
        ),
        event("desk", answer("pay", "c", paid=7), actions={"artifact_delta": {"a.png": 0}}),
        event("desk", "Drawn."),
    )
    first = parse(bytes(found.of(ModelAnswered)[0].response))
    assert isinstance(first, dict)
    assert first["content"]["parts"][0] == {"text": "Hm.", "thought": True}  # type: ignore[index,call-overload]
    assert found.gaps == []
    picture = {"function_response": {"id": "c", "name": "pay", "response": {}, "parts": [{}]}}
    held = told(
        event("user", "x"), event("desk", call("pay", "c", order=7)), event("desk", picture)
    )
    assert "held pictures or files" in held.gaps[0]


def test_an_agent_that_escalates_without_a_word_says_nothing() -> None:
    found = told(
        event("user", "go"), event("desk", "x"), event("judge", actions={"escalate": True})
    )
    assert len(found.of(ModelAnswered)) == 1
    assert found.gaps == []


def test_a_tool_that_escalates_is_on_record_with_it() -> None:
    found = told(
        event("user", "pay 7"),
        event("desk", call("pay", "c", order=7)),
        event("desk", answer("pay", "c", paid=7), actions={"escalate": True}),
    )
    assert parse(bytes(found.of(EffectCommitted)[0].actions)) == {"escalate": True}
