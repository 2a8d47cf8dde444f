"""Where a bounded view of a session begins: at a turn, and never after what is still open."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.genai import types

from backstop.replay.harness.views import Views

pytestmark = pytest.mark.filterwarnings("ignore")


def says(turn: int, author: str = "clerk") -> Event:
    content = types.Content(role="model", parts=[types.Part(text="words")])
    return Event(invocation_id=f"t{turn}", author=author, content=content)


def calls(turn: int, name: str) -> Event:
    part = types.Part(function_call=types.FunctionCall(id=name, name="ask"))
    return Event(
        invocation_id=f"t{turn}",
        author="clerk",
        content=types.Content(role="model", parts=[part]),
    )


def answers(turn: int, name: str) -> Event:
    response = types.FunctionResponse(id=name, name="ask", response={})
    part = types.Part(function_response=response)
    return Event(
        invocation_id=f"t{turn}", author="user", content=types.Content(role="user", parts=[part])
    )


def talk(turns: Sequence[int]) -> list[Event]:
    """Turns of two events each."""
    return [said for turn in turns for said in (says(turn, "user"), says(turn))]


def test_it_begins_with_a_turn_and_holds_at_least_the_recent_events() -> None:
    views = Views(3)
    assert [views.begin(talk(range(turns))) for turns in range(6)] == [0, 0, 0, 2, 4, 6]


def test_it_does_not_pass_a_call_that_nobody_answered_until_somebody_does() -> None:
    views = Views(2)
    events = [*talk([0]), says(1, "user"), calls(1, "a"), *talk([2, 3, 4])]
    assert views.begin(events) == 2
    events += [answers(5, "a"), says(5)]
    assert views.begin(events) == len(events) - 2


def test_it_does_not_pass_an_interrupt_that_waits_for_a_person() -> None:
    paused = says(1)
    paused.long_running_tool_ids = {"wait"}
    assert Views(1).begin([*talk([0]), paused, *talk([2, 3])]) == 2


def test_it_reaches_back_to_whoever_spoke_last() -> None:
    events = [*talk([0, 1]), *(says(turn, "user") for turn in range(2, 9))]
    assert Views(2).begin(events) == 2


@pytest.mark.parametrize(
    "kept",
    [
        EventActions(agent_state={"at": 1}),
        EventActions(end_of_agent=True),
        EventActions(rewind_before_invocation_id="t0"),
        EventActions(
            compaction=EventCompaction(
                start_timestamp=0,
                end_timestamp=1,
                compacted_content=types.Content(role="model", parts=[types.Part(text="short")]),
            )
        ),
    ],
    ids=["state", "end", "rewind", "compaction"],
)
def test_what_the_framework_looks_back_for_is_never_passed(kept: EventActions) -> None:
    marked = says(1)
    marked.actions = kept
    assert Views(2).begin([*talk([0]), marked, *talk(range(2, 9))]) == 2


def test_a_task_under_way_is_never_passed() -> None:
    scoped = says(1)
    scoped.isolation_scope = "task@1"
    assert Views(2).begin([*talk([0]), scoped, *talk(range(2, 9))]) == 2
