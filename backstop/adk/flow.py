"""What a tool's body does to the flow of a run besides its result: noted, and done again.

A body may end a loop, hand over to another agent, keep its result from the model, or ask a
person before it acts. In a replay no body runs, so the record has to say so.
"""

from __future__ import annotations

from typing import Any, Final

_PLAIN: Final = ("end_of_agent", "escalate", "skip_summarization", "transfer_to_agent")
CONFIRM: Final = "confirm"
"""The member under which a request for a person's confirmation is noted."""


def note(tool_context: Any) -> dict[str, Any]:
    """What stands in the actions of a call now; empty where there is nothing."""
    actions = tool_context.actions
    found = {name: value for name in _PLAIN if (value := getattr(actions, name, None)) is not None}
    asked = getattr(actions, "requested_tool_confirmations", None) or {}
    wanted = asked.get(tool_context.function_call_id)
    if wanted is not None:
        found[CONFIRM] = {"hint": wanted.hint, "payload": wanted.payload}
    return found


def since(before: dict[str, Any], tool_context: Any) -> dict[str, Any]:
    """What a call's body added to its actions, as JSON values."""
    return {name: value for name, value in note(tool_context).items() if name not in before}


def redo(told: dict[str, Any], tool_context: Any) -> None:
    """Do to the flow of this run what the recorded body did."""
    for name in _PLAIN:
        if name in told:
            setattr(tool_context.actions, name, told[name])
    if CONFIRM in told:
        tool_context.request_confirmation(**told[CONFIRM])
