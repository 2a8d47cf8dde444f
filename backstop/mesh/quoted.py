# ruff: noqa: ANN401 - parts and events are the framework's
"""How the framework retells one agent's words to another, so that they are recognised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from google.adk.events.event import Event
from google.adk.flows.llm_flows.context import _contents, _fencing
from google.genai import types

FRAMING: Final = frozenset(
    text
    for text in (
        getattr(_fencing, "OTHER_AGENT_CONTEXT_PREAMBLE", None),
        getattr(_contents, "_SINGLE_TURN_NUDGE", None),
    )
    if isinstance(text, str)
)
"""Texts of the framework's own, the same in every request."""

_MARK: Final = "["


def may_be_quoted(part: Any) -> bool:
    """Whether a part looks like what another agent said, did, or was told."""
    return isinstance(part.text, str) and part.text.startswith(_MARK)


def quoted(agent: str, forms: list[dict[str, Any]]) -> Iterator[Any]:
    """The parts that another agent is shown of what `agent` said, whose parts have these forms.

    None where this framework tells it in a way that is not known here.
    """
    present = getattr(_fencing, "_present_other_agent_message", None)
    if present is None:
        return
    parts = [types.Part.model_validate(form) for form in forms]
    shown = present(Event(author=agent, content=types.Content(role="model", parts=parts)))
    if shown is not None and shown.content is not None:
        yield from shown.content.parts or ()
