"""Conversations in Anthropic's form become ledgers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backstop.adapters.chat import Selection
from backstop.adapters.importing.anthropic import read_messages
from backstop.core.events import EffectFailed, RunClosed, RunOpened, StepStarted, ToolRead
from tests.unit.adapters.importing.telling import (
    AT,
    booked,
    effects,
    gaps,
    refusal,
    withstands,
)


def read(document: Any, **chosen: Any) -> Any:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return read_messages(data, name="chat.json", selection=Selection(**chosen), at=AT)


def user(*blocks: dict[str, Any] | str) -> dict[str, Any]:
    return {"role": "user", "content": [_text(block) for block in blocks]}


def assistant(*blocks: dict[str, Any] | str) -> dict[str, Any]:
    return {"role": "assistant", "content": [_text(block) for block in blocks]}


def _text(block: dict[str, Any] | str) -> dict[str, Any]:
    return {"type": "text", "text": block} if isinstance(block, str) else block


def use(name: str, tool: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": tool, "input": given}


def result(name: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **more}


TALK = [
    {"role": "user", "content": "Pay 7 and 8"},
    assistant(
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        "One moment.",
        use("a", "look", order="7"),
        use("b", "pay", order="7"),
        use("c", "pay", order="8"),
    ),
    user(
        result("c", [{"type": "text", "text": "card "}, {"type": "text", "text": "declined"}],
               is_error=True),
        result("a", "open"),
        result("b"),
    ),
    assistant("7 is paid."),
]  # fmt: skip


def test_calls_of_one_message_are_answered_in_any_order_and_errors_are_failures() -> None:
    header, events = booked(read(TALK))
    assert effects(events) == [("pay", "b", "committed"), ("pay", "c", "failed")]
    (failed,) = [event for event in events if isinstance(event, EffectFailed)]
    assert failed.error.message == "card declined"
    (looked,) = [event for event in events if isinstance(event, ToolRead)]
    assert bytes(looked.result) == b'"open"'
    assert gaps(header) == []
    assert isinstance(events[-1], RunClosed)


def test_results_are_no_step_and_words_beside_them_are_one() -> None:
    talk = [user("Pay"), assistant(use("a", "pay", order="7")), user(result("a"), "and now?")]
    _, events = booked(read(talk))
    steps = [one.step for one in events if isinstance(one, StepStarted)]
    assert steps == ["s0", "s1"]
    assert effects(events) == [("pay", "a", "committed")]


def test_a_request_and_a_list_of_conversations_are_read_too() -> None:
    many = [{"task": name, "messages": TALK} for name in ("x", "y")]
    for document, runs in (({"model": "m", "messages": TALK}, ["0"]), (many, ["0", "1"])):
        _, events = booked(read(document))
        assert [one.run for one in events if isinstance(one, RunOpened)] == runs
    _, events = booked(read(many, where={"task": "y"}, run_field="task"))
    assert [one.run for one in events if isinstance(one, RunOpened)] == ["y"]


def test_a10_a_call_without_a_result_may_have_happened() -> None:
    """A10: of two parallel calls only one was answered."""
    talk = [user("Pay"), assistant(use("a", "pay", order="7"), use("b", "pay", order="8"))]
    header, events = booked(read([*talk, user(result("a"))]))
    assert effects(events) == [("pay", "a", "committed"), ("pay", "b", "open")]
    assert gaps(header) == ["run 0: 1 of its calls have no result"]


def test_i1_an_id_that_is_used_again_joins_each_result_to_its_own_call() -> None:
    """I1: calls of later messages may reuse an id."""
    again = [
        user("Pay"),
        *(
            message
            for order in ("7", "8")
            for message in (assistant(use("x", "pay", order=order)), user(result("x", order)))
        ),
    ]
    _, events = booked(read(again))
    assert effects(events) == [("pay", "x", "committed")] * 2


def test_f13_two_calls_of_one_message_under_one_id_are_refused() -> None:
    """F13: a result could belong to either."""
    talk = [user("Pay"), assistant(use("x", "pay", order="7"), use("x", "look", order="7"))]
    assert "message 1: two calls under the id 'x'" in refusal(lambda: read(talk))


def test_a16_what_the_service_did_and_what_a_summary_swallowed_are_gaps() -> None:
    """A16: calls inside the model's service cannot be observed."""
    talk = [
        user({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}),
        assistant(
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
            {"type": "compaction", "content": "They paid something."},
            "Found it.",
        ),
    ]
    header, events = booked(read(talk))
    assert effects(events) == []
    assert [line.split(": ", 1)[1][:8] for line in gaps(header)] == [
        "1 calls ",
        "1 of its",
        "1 images",
    ]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"{", "import-not-json: chat.json: not JSON"),
        (b'[{"role":"user","role":"user"}]', "import-not-json: chat.json: not JSON"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "import-not-json: chat.json: not JSON"),
        ([], "import-shape: chat.json: not a list"),
        ({}, "import-shape: chat.json: trajectory 0 has no list of messages"),
        (
            [{"role": "tool", "content": ""}],
            "import-shape: chat.json: trajectory 0, message 0: unk",
        ),
        ([user(result("z"))], "import-shape: chat.json: trajectory 0, message 0: answers call 'z'"),
        ([assistant(use("", "pay"))], "import-shape: chat.json: trajectory 0, message 0: a tool_u"),
        (
            [assistant({"type": "tool_use", "id": "a", "name": "pay", "input": "7"})],
            "import-shape: chat.json: trajectory 0, message 0: the arguments of pay are no object",
        ),
        ([user({"type": "tool_use"})], "import-shape: chat.json: trajectory 0, message 0: a block"),
        ([{"role": "user"}], "import-shape: chat.json: trajectory 0, message 0: its content"),
    ],
)
def test_what_is_no_conversation_is_refused_in_a_line_that_says_where(
    document: Any, why: str
) -> None:
    assert refusal(lambda: read(document)).startswith(why)


def test_whatever_is_of_another_kind_is_imported_or_refused() -> None:
    imported, refused = withstands(read, TALK)
    assert imported
    assert refused
