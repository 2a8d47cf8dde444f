"""Chat-format trajectories become ledgers (I1)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from backstop.adapters.chat import Selection, import_chat
from backstop.adapters.transcript import ImportRefused
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    Event,
    Header,
    ModelAnswered,
    RunClosed,
    RunOpened,
    StepStarted,
    ToolRead,
)
from backstop.core.ledgerfile import read, seal_lines, verify

DESK = Namespace(agent="front-desk")
TOOLS = {
    "cancel": Declaration(tool="cancel", identity=("booking",)),
    "look": Declaration(tool="look", effect=False),
}

Message = Mapping[str, Any]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def asks(*calls: tuple[str, str, object], text: str | None = None) -> Message:
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {
                "id": name,
                "type": "function",
                "function": {
                    "name": tool,
                    "arguments": args if isinstance(args, str) else json.dumps(args),
                },
            }
            for name, tool, args in calls
        ],
    }


def says(text: str) -> Message:
    return {"role": "assistant", "content": text}


def answers(name: str, tool: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": name, "name": tool, "content": text}


TALK = (
    {"role": "system", "content": "Be kind."},
    user("Please cancel B1"),
    asks(("c1", "look", {"booking": "B1"}), text="One moment."),
    answers("c1", "look", '{"seats": 1.50}'),
    asks(("c2", "cancel", {"booking": "B1", "fee": 1.50})),
    answers("c2", "cancel", "Error: not yours"),
    user("Then B2"),
    asks(("c3", "cancel", {"booking": "B2"})),
    answers("c3", "cancel", "cancelled"),
    says("Done."),
    user("Thanks"),
)


def imported(
    *talks: Sequence[Message], selection: Selection | None = None, **fields: Any
) -> tuple[Header, list[Event]]:
    entries = [{"id": place, "traj": list(talk), **fields} for place, talk in enumerate(talks)]
    return import_chat(
        json.dumps(entries).encode(),
        name="chat.json",
        namespace=DESK,
        declarations=TOOLS,
        selection=selection or Selection(),
    )


def refusal(data: object, selection: Selection | None = None) -> tuple[str, str]:
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    with pytest.raises(ImportRefused) as caught:
        import_chat(
            text,
            name="chat.json",
            namespace=DESK,
            declarations=TOOLS,
            selection=selection or Selection(),
        )
    message = str(caught.value)
    assert message.startswith("chat.json: ")
    assert "\n" not in message
    return caught.value.slug, message


def test_a_trajectory_is_a_run_and_a_user_message_a_step() -> None:
    _, events = imported(TALK)
    assert [type(event) for event in events] == [
        RunOpened,
        StepStarted,
        ModelAnswered,
        ToolRead,
        ModelAnswered,
        EffectClaimed,
        EffectFailed,
        StepStarted,
        ModelAnswered,
        EffectClaimed,
        EffectCommitted,
        ModelAnswered,
        StepStarted,
        RunClosed,
    ]
    steps = [event for event in events if isinstance(event, StepStarted)]
    assert [(step.step, step.cursor) for step in steps] == [("s0", 0), ("s1", 1), ("s2", 2)]
    assert json.loads(bytes(steps[0].message)) == {
        "role": "user",
        "parts": [{"text": "Please cancel B1"}],
    }


def test_models_are_recorded_as_adk_would_be_answered() -> None:
    _, events = imported(TALK)
    models = [event for event in events if isinstance(event, ModelAnswered)]
    assert [(model.step, model.ordinal) for model in models] == [
        ("s0", 0),
        ("s0", 1),
        ("s1", 0),
        ("s1", 1),
    ]
    assert all(model.request is None and not model.agent for model in models)
    assert json.loads(bytes(models[0].response)) == {
        "content": {
            "role": "model",
            "parts": [
                {"text": "One moment."},
                {"function_call": {"id": "c1", "name": "look", "args": {"booking": "B1"}}},
            ],
        }
    }


def test_what_was_said_is_kept_to_the_letter() -> None:
    """Replay serves it again: no number and no string may be folded."""
    talk = (user("e\u0301"), asks(("c", "cancel", '{"booking": "B1", "fee": 1.50}')))
    _, events = imported(talk)
    claim = next(event for event in events if isinstance(event, EffectClaimed))
    assert bytes(claim.args) == b'{"booking":"B1","fee":1.50}'
    step = next(event for event in events if isinstance(event, StepStarted))
    assert "e\u0301" in bytes(step.message).decode()


def test_an_answer_that_begins_with_error_is_a_failure() -> None:
    _, events = imported(TALK)
    failed = next(event for event in events if isinstance(event, EffectFailed))
    # It was answered, not raised: the type stays empty, so that a replay answers it too.
    assert (failed.error.type, failed.error.message) == ("", "Error: not yours")
    assert failed.final
    read = imported((user("x"), asks(("a", "look", {})), answers("a", "look", "Error: no")))[1][3]
    assert isinstance(read, ToolRead)
    assert read.error is not None
    assert json.loads(bytes(read.result)) == "Error: no"


def test_the_ledger_stands_up_to_the_strict_reader() -> None:
    header, events = imported(TALK, TALK)
    data = b"".join(seal_lines(header, events))
    summary = verify([data], name="x")
    assert (summary.runs, summary.effects, summary.open_runs) == (2, 2, 0)
    assert read(data, name="x").header == header
    assert (header.source, header.guarded, header.agent) == ("import:chat", False, "front-desk")
    assert header.declarations[header.tools["cancel"]] == TOOLS["cancel"]


def test_two_imports_are_the_same_bytes() -> None:
    assert b"".join(seal_lines(*imported(TALK))) == b"".join(seal_lines(*imported(TALK)))


def test_messages_are_a_second_apart_from_the_given_time() -> None:
    _, events = import_chat(
        json.dumps([{"messages": [user("a"), says("b")]}]).encode(),
        name="x",
        namespace=DESK,
        declarations={},
        selection=Selection(),
        at=datetime(2026, 2, 3, 23, 59, 59, tzinfo=UTC),
    )
    assert [event.at for event in events] == [
        "2026-02-03T23:59:59Z",
        "2026-02-03T23:59:59Z",
        "2026-02-04T00:00:00Z",
        "2026-02-04T00:00:00Z",
    ]


def test_i1_a_repeated_call_id_joins_the_nearest_earlier_unanswered_call() -> None:
    """I1: real trajectories reuse one call id for different calls."""
    talk = (
        user("two"),
        asks(("same", "cancel", {"booking": "B1"})),
        answers("same", "cancel", "one"),
        asks(("same", "cancel", {"booking": "B2"})),
        answers("same", "cancel", "Error: two"),
        asks(("same", "cancel", {"booking": "B3"})),
        asks(("same", "cancel", {"booking": "B4"})),
        answers("same", "cancel", "four"),
    )
    _, events = imported(talk)
    keys = {
        event.key: json.loads(bytes(event.args))["booking"]
        for event in events
        if isinstance(event, EffectClaimed)
    }
    outcomes = [
        (keys[event.key], type(event).__name__)
        for event in events
        if isinstance(event, EffectCommitted | EffectFailed)
    ]
    assert outcomes == [
        ("B1", "EffectCommitted"),
        ("B2", "EffectFailed"),
        ("B4", "EffectCommitted"),
    ]
    assert not any(isinstance(event, RunClosed) for event in events)


def test_i1_equal_ids_of_one_message_are_told_apart_by_name_then_by_order() -> None:
    """I1: two calls of one message may share an id."""
    talk = (
        user("x"),
        asks(
            ("a", "cancel", {"booking": "1"}), ("a", "cancel", {"booking": "2"}), ("a", "look", {})
        ),
        answers("a", "look", "seen"),
        answers("a", "cancel", "first"),
        answers("a", "cancel", "Error: second"),
    )
    _, events = imported(talk)
    claims = [event.key for event in events if isinstance(event, EffectClaimed)]
    done = next(event for event in events if isinstance(event, EffectCommitted))
    assert done.key == claims[0]


def test_an_answer_without_id_joins_by_name() -> None:
    answer = {"role": "tool", "name": "cancel", "content": "done"}
    _, events = imported((user("x"), asks(("", "cancel", {"booking": "1"})), answer))
    assert any(isinstance(event, EffectCommitted) for event in events)


def test_a_call_never_answered_leaves_its_run_open() -> None:
    talk = (user("x"), asks(("a", "cancel", {"booking": "1"}), ("b", "look", {})))
    header, events = imported(talk)
    [look] = [event for event in events if isinstance(event, ToolRead)]
    assert look.pending
    assert isinstance(events[events.index(look) - 1], ModelAnswered)
    summary = verify([b"".join(seal_lines(header, events))], name="x")
    assert (summary.open_runs, summary.effects) == (1, 0)


def test_reads_never_answered_stand_where_they_were_asked_for() -> None:
    first = asks(("a", "look", {"n": 1}), ("b", "look", {"n": 2}))
    _, events = imported((user("x"), first, says("Well"), asks(("c", "look", {"n": 3}))))
    kinds = [type(event).__name__ for event in events[2:]]
    one, reads = "ModelAnswered", "ToolRead"
    assert kinds == [one, reads, reads, one, one, reads]
    assert [event.call for event in events if isinstance(event, ToolRead)] == ["a", "b", "c"]


def test_a_tool_that_nobody_declared_is_an_effect_and_declared_as_such() -> None:
    header, events = imported((user("x"), asks(("a", "buy", {"what": 1}))))
    assert any(isinstance(event, EffectClaimed) for event in events)
    assert header.declarations[header.tools["buy"]] == Declaration(tool="buy")


def test_an_agent_that_speaks_first_begins_a_step_without_a_message() -> None:
    _, events = imported((says("Hello!"), user("Hi")))
    steps = [event for event in events if isinstance(event, StepStarted)]
    assert [(step.cursor, step.trigger) for step in steps] == [(0, "start"), (1, "message")]


def test_text_parts_and_empty_arguments_are_read() -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "a"}, {"text": "b"}]}
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": ""}}]}
    _, events = imported((parts, call, {"role": "tool", "name": "look", "content": None}))
    assert msgspec.json.decode(events[1].message)["parts"] == [{"text": "ab"}]  # type: ignore[union-attr]
    assert isinstance(events[3], ToolRead)


def test_where_and_run_field_choose_and_name_the_runs() -> None:
    entries = [
        {"task": task, "trial": trial, "live": True, "messages": [user("x")]}
        for trial in (0, 1)
        for task in ("a", "b")
    ]
    _, events = import_chat(
        json.dumps(entries).encode(),
        name="x",
        namespace=DESK,
        declarations={},
        selection=Selection(where={"trial": "1", "live": "true"}, run_field="task"),
    )
    assert {event.run for event in events} == {"a", "b"}


@pytest.mark.parametrize(
    ("data", "slug", "words"),
    [
        (b"", "import-not-json", "not JSON"),
        (b"\xff", "import-not-json", "not JSON"),
        (b'[{"a":1,"a":2}]', "import-not-json", "not JSON"),
        (b'[{"a":NaN}]', "import-not-json", "not JSON"),
        (b"[" * 100_000, "import-not-json", "not JSON"),
        ({}, "import-shape", "not a list"),
        ([], "import-shape", "not a list"),
        ([1], "import-shape", "trajectory 0 is not an object"),
        ([{}], "import-shape", "no list of messages"),
        ([{"traj": 1}], "import-shape", "no list of messages"),
        ([{"traj": [1]}], "import-shape", "message 0 is no object"),
        ([{"traj": [{}]}], "import-shape", "message 0 is no object"),
        ([{"traj": [{"role": "pilot"}]}], "import-shape", "message 0: unknown role 'pilot'"),
        ([{"traj": [{"role": "user", "content": 1}]}], "import-shape", "neither text"),
        ([{"traj": [{"role": "user", "content": [{"image": 1}]}]}], "import-shape", "neither text"),
        ([{"traj": [user("x"), answers("a", "look", "y")]}], "import-shape", "nobody asked"),
        ([{"traj": [user("x"), {"role": "tool", "content": "y"}]}], "import-shape", "nobody asked"),
        ([{"traj": [asks(("a", "cancel", "{"))]}], "import-shape", "not JSON"),
        ([{"traj": [asks(("a", "cancel", "[]"))]}], "import-shape", "no JSON object"),
        ([{"traj": [asks(("a", "cancel", "{}"))]}], "no-identity", "message 0: "),
        ([{"traj": [asks(("a", "", "{}"))]}], "import-shape", "without a name"),
        ([{"traj": [{"role": "assistant", "tool_calls": [{}]}]}], "import-shape", "without 'func"),
        ([{"traj": [{"role": "assistant", "tool_calls": {}}]}], "import-shape", "not a list"),
        ([{"traj": [{"role": "assistant", "function_call": {}}]}], "import-shape", "legacy"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(data: object, slug: str, words: str) -> None:
    found, message = refusal(data)
    assert found == slug
    assert words in message


@pytest.mark.parametrize(
    ("selection", "slug", "words"),
    [
        (Selection(where={"trail": "0"}), "import-where", "they have: id, messages, trial"),
        (Selection(where={"trial": "7"}), "import-no-match", "none of 2 trajectories has trial=7"),
        (Selection(where={"trial": "00"}), "import-no-match", "trial=00"),
        (Selection(run_field="task"), "import-shape", "--run-field; it has: id, messages, trial"),
        (Selection(run_field="messages"), "import-shape", "no text or number"),
        (Selection(run_field="trial"), "import-run-twice", "trajectory 1 gives run '0'"),
    ],
)
def test_a_choice_that_fits_nothing_is_refused(selection: Selection, slug: str, words: str) -> None:
    entries = [{"id": place, "trial": 0, "messages": [user("x")]} for place in (1, 2)]
    found, message = refusal(entries, selection)
    assert found == slug
    assert words in message
