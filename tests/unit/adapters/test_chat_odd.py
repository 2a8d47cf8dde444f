"""Odd but honest trajectories are read; what may mean two things is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backstop.adapters.chat import Selection, import_chat
from backstop.adapters.transcript import ImportRefused
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import EffectCommitted, Event
from backstop.core.ledgerfile import seal_lines, verify

USER = {"role": "user", "content": "hello"}


def asks(arguments: object, name: object = "c") -> dict[str, Any]:
    """The model calls `pay`."""
    call = {"id": name, "function": {"name": "pay", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answers(name: object = "c") -> dict[str, Any]:
    """The tool answers."""
    return {"role": "tool", "tool_call_id": name, "content": "paid"}


def imported(*entries: dict[str, Any], **selection: Any) -> list[Event]:
    """The events of trajectories, which stand up to the strict reader."""
    header, events = import_chat(
        json.dumps(entries).encode(),
        name="F",
        namespace=Namespace(agent="desk"),
        declarations={"pay": Declaration(tool="pay", identity=("vendor",))},
        selection=Selection(**selection),
    )
    verify([b"".join(seal_lines(header, events))], name="L")
    return events


def talk(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """One trajectory."""
    return {**fields, "messages": [USER, *messages]}


@pytest.mark.parametrize("arguments", [[], False, 0, "[]", "null", 5])
def test_only_absent_arguments_are_none(arguments: object) -> None:
    """An empty list is no call without arguments, it is a file that we do not understand."""
    with pytest.raises(ImportRefused, match="are no JSON object"):
        imported(talk(asks(arguments), answers()))


def test_numbered_calls_are_joined_to_their_answers() -> None:
    (paid,) = [
        event
        for event in imported(talk(asks({"vendor": "a"}, 7), answers(7)))
        if isinstance(event, EffectCommitted)
    ]
    assert paid.by == "import"


def test_an_answer_to_no_call_says_so() -> None:
    with pytest.raises(ImportRefused, match="answers call 'without an id'"):
        imported(talk(asks({"vendor": "a"}), {"role": "tool", "content": "paid"}))


@pytest.mark.parametrize(
    ("found", "wanted"), [(1.0, "1.0"), (1.0, "1"), (1, "1.0"), (True, "true")]
)
def test_a_number_may_be_chosen_in_any_spelling(found: object, wanted: str) -> None:
    paid = talk(asks({"vendor": "a"}), answers(), reward=found)
    assert imported(paid, where={"reward": wanted})


@pytest.mark.parametrize(("found", "wanted"), [("1.0", "1"), (1, "one"), (True, "1"), (None, "")])
def test_a_text_is_chosen_as_it_stands(found: object, wanted: str) -> None:
    paid = talk(asks({"vendor": "a"}), answers(), reward=found)
    with pytest.raises(ImportRefused) as caught:
        imported(paid, where={"reward": wanted})
    assert caught.value.slug == "import-no-match"


def test_two_spellings_of_one_run_are_one_run_twice() -> None:
    """Keys are made of text in NFC: both runs would have the same."""
    one = talk(asks({"vendor": "a"}), answers(), task="Caf\u00e9")
    two = talk(asks({"vendor": "a"}), answers(), task="Cafe\u0301")
    with pytest.raises(ImportRefused) as caught:
        imported(one, two, run_field="task")
    assert caught.value.slug == "import-run-twice"
