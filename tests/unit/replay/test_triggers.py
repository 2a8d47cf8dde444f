"""Recorded call ids in triggers become the replay's (semantics.md S4)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from backstop.replay.triggers import Pending, rewritten


def nothing_known(_: str) -> str | None:
    """No recorded call id is known."""
    return None


def ids(message: Any, known: dict[str, str], *pending: tuple[str, str]) -> list[str]:
    """The ids in `message` after rewriting."""
    waiting = [Pending(id=number, name=name) for number, name in pending]
    told: Any = rewritten(msgspec.Raw(msgspec.json.encode(message)), known.get, waiting)
    parts = told["parts"]
    return [next(iter(part.values()))["id"] for part in parts]


def response(number: str, name: str = "approve", *, spelled: str = "function_response") -> Any:
    """A part that answers a call."""
    return {spelled: {"id": number, "name": name, "response": {"ok": True}}}


@pytest.mark.parametrize("spelled", ["function_response", "functionResponse"])
def test_s4_an_id_goes_by_the_key_of_its_call(spelled: str) -> None:
    """S4: both spellings of the framework."""
    message = {"parts": [response("old-1", spelled=spelled), response("old-2", spelled=spelled)]}
    assert ids(message, {"old-1": "new-1", "old-2": "new-2"}) == ["new-1", "new-2"]


def test_s4_a_confirmation_goes_by_its_name_if_one_waits() -> None:
    """S4: the framework makes up the id of a confirmation itself; no row holds it."""
    message = {"parts": [response("old", "adk_request_confirmation")]}
    assert ids(message, {}, ("c-1", "adk_request_confirmation"), ("x", "approve")) == ["c-1"]


def test_s4_an_id_that_fits_more_than_one_stays_so_that_no_answer_goes_astray() -> None:
    """S4, F13: refuse what is ambiguous."""
    message = {"parts": [response("old")]}
    assert ids(message, {}, ("a", "approve"), ("b", "approve")) == ["old"]


def test_a14_an_answer_to_what_was_never_asked_does_not_come() -> None:
    """A14, S4: a version that stops before it asks is not broken; nobody answers it."""
    message = {"parts": [response("old")]}
    told = rewritten(msgspec.Raw(msgspec.json.encode(message)), nothing_known, [])
    assert told is None
    message["parts"].append({"text": "and something else"})
    assert rewritten(msgspec.Raw(msgspec.json.encode(message)), nothing_known, []) == message


def test_s4_an_id_that_the_replay_made_too_stays() -> None:
    """S4: ids that are fixed per step can come out equal."""
    assert ids({"parts": [response("same")]}, {"same": "other"}, ("same", "approve")) == ["same"]


@pytest.mark.parametrize(
    "text",
    [b'{"parts":[{"text":"tick"}]}', b"null", b'"a function"', b'{"function_response":1}'],
)
def test_a_message_without_answers_stays_as_it_is(text: bytes) -> None:
    assert rewritten(msgspec.Raw(text), nothing_known, []) == msgspec.Raw(text)


def test_a_part_that_is_no_answer_is_left_alone() -> None:
    message = {"parts": [{"text": "a function"}, 7, {"function_response": {"name": "x"}}]}
    assert rewritten(msgspec.Raw(msgspec.json.encode(message)), nothing_known, []) == message
