"""Call ids in what sets off a step (semantics.md S4).

An approval, or the result of a long-running call, names a call of the production run. The
candidate gave that call another id in the replay; the answer must go to it, and to it
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A call of the replay that waits for an answer from outside."""

    id: str
    name: str

    @classmethod
    def of(cls, told: Mapping[str, object]) -> Pending:
        """As the harness tells it."""
        return cls(id=str(told.get("id", "")), name=str(told.get("name", "")))


def rewritten(
    message: msgspec.Raw, replayed_id: Callable[[str], str | None], pending: Sequence[Pending]
) -> object:
    """`message` with every recorded call id in it told as the replay's.

    By the call's key where the record knows the call; else by name, if just one call of that
    name waits. An id that fits more than one stays: no answer goes astray. None where the
    message holds nothing but answers to calls that the replay never made: to a version that
    does not ask, nobody sends an answer.
    """
    if b"unction" not in bytes(message):
        return message
    content = msgspec.json.decode(message)
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(parts, list):
        return message
    unasked = 0
    for part in parts:
        response = _response(part)
        if response is not None:
            found = _answering(response, replayed_id, pending)
            unasked += found is None
            response["id"] = found or response["id"]
    return None if unasked and unasked == len(parts) else content


def _response(part: object) -> dict[str, object] | None:
    if not isinstance(part, dict):
        return None
    found = part.get("function_response") or part.get("functionResponse")
    return found if isinstance(found, dict) and found.get("id") else None


def _answering(
    response: Mapping[str, object],
    replayed_id: Callable[[str], str | None],
    pending: Sequence[Pending],
) -> str | None:
    """The replay's id of the call that is answered; None if there is no such call."""
    recorded = str(response["id"])
    if any(call.id == recorded for call in pending):
        return recorded
    if (found := replayed_id(recorded)) is not None:
        return found
    alike = [call.id for call in pending if call.name == response.get("name")]
    if not alike:
        return None
    return alike[0] if len(alike) == 1 else recorded
