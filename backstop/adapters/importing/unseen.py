"""What the events of a session show to have happened, and do not tell: each a gap.

Code that a model had executed, tools within a model's service, nodes of a workflow that are
code, what was said live, and pieces of what was streamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from backstop.adapters.importing.fields import as_object, as_text
from backstop.core.canon import Json

_LIVE: Final = (
    "input_transcription",
    "live_session_id",
    "live_session_resumption_update",
    "output_transcription",
)
OF_EVENT: Final = frozenset({*_LIVE, "output"})
"""Members of an event that may show such a thing."""

OF_PART: Final = frozenset({"executable_code", "tool_call"})
"""The same of a part."""

_ONLY_READING: Final = frozenset(
    {"FILE_SEARCH", "GOOGLE_MAPS", "GOOGLE_SEARCH_IMAGE", "GOOGLE_SEARCH_WEB", "URL_CONTEXT"}
)


def unseen_in_event(event: Mapping[str, Json]) -> Iterator[str]:
    """What an event shows and does not tell, each as the end of a sentence about the run."""
    if any(event.get(name) is not None for name in _LIVE):
        # A15: tool callbacks are passed over there, and a replay holds no live conversation.
        yield "it was held live, by voice or video: a replay cannot hold it again"
    if event.get("output") is not None and event.get("content") is None:
        path = as_text(as_object(event.get("node_info"), "node_info").get("path"), "path")
        yield f"code of its workflow ran ({path[:80]}): what that did is not in its events"


def unseen_in_part(part: Mapping[str, Json]) -> Iterator[str]:
    """What a part shows and does not tell."""
    if part.get("executable_code") is not None:
        yield "it executed code; what that did is not in its events"
    if (called := part.get("tool_call")) is not None:
        kind = as_text(as_object(called, "tool_call").get("tool_type"), "tool_type")
        if kind not in _ONLY_READING:
            name = kind[:80] or "a tool"
            yield f"it used {name} within the model's service; what that did is not in its events"


def is_a_piece(call: Mapping[str, Json]) -> bool:
    """Whether a function call is a piece of one that was streamed: it has no arguments yet."""
    unfinished = call.get("partial_args") and not call.get("args")
    return call.get("will_continue") is True or bool(unfinished)
