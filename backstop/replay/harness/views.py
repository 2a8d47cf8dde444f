"""Where a bounded view of a session may begin: at a turn, with nothing before it still open.

The framework looks back over a session for more than what it shows a model: calls that
nobody answered yet, who spoke last, tasks under way, compactions, rewinds, agents' saved states. A
view never begins after one of these. What the model is shown is not judged here: the driver
compares its request with the recorded one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Views:
    """Follows one session; looks at each of its events once, however often it is asked."""

    def __init__(self, recent: int) -> None:
        self._recent = recent
        self._seen = 0
        self._turns: list[int] = []
        self._turn = ""
        self._first: dict[str, int] = {}
        self._open: dict[str, int] = {}
        self._spoken = 0
        self._held: int | None = None
        self._begin = 0

    def begin(self, events: Sequence[Any]) -> int:
        """The place of the first event to show, for at least the `recent` last ones.

        Events are only ever appended between two calls.
        """
        for index in range(self._seen, len(events)):
            self._look_at(index, events[index])
        self._seen = len(events)
        bound = min(
            [
                max(0, len(events) - self._recent),
                self._spoken,
                *self._open.values(),
                *([] if self._held is None else [self._held]),
            ]
        )
        # The window only moves on: each turn is passed once.
        while self._begin < len(self._turns) and self._turns[self._begin] <= bound:
            self._begin += 1
        while self._begin > 0 and self._turns[self._begin - 1] > bound:
            self._begin -= 1
        return self._turns[self._begin - 1] if self._begin else 0

    def _look_at(self, index: int, event: Any) -> None:
        if event.invocation_id != self._turn or not self._turns:
            self._turn = event.invocation_id
            self._turns.append(index)
        since = self._first.setdefault(event.invocation_id, index)
        for call in event.get_function_calls():
            self._open[call.id or f"event-{index}"] = since
        for interrupt in event.long_running_tool_ids or ():
            self._open[interrupt] = since
        for answer in event.get_function_responses():
            self._open.pop(answer.id or "", None)
        if event.author != "user" and event.content is not None:
            self._spoken = since  # who spoke last decides who speaks next
        if self._held is None and _is_looked_back_at(event):
            self._held = since


def _is_looked_back_at(event: Any) -> bool:
    """Whether the framework may look for this event from any later turn."""
    actions = event.actions
    names = ("compaction", "rewind_before_invocation_id", "agent_state", "end_of_agent")
    return bool(
        getattr(event, "isolation_scope", None)
        or any(getattr(actions, name, None) for name in names)
    )
