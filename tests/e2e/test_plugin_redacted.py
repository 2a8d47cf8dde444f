"""`backstop.Plugin` keeps declared values out of its store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from backstop.core.events import CursorAdvanced, EffectClaimed, ModelAnswered
from backstop.core.redaction import key_from, token
from backstop.wiring.redacting import VARIABLE
from tests.e2e.till import CONFIG, Till, calls, says

pytestmark = pytest.mark.filterwarnings("ignore")

SECRET = "a secret of the till"  # noqa: S105 - of nobody
HIDING = CONFIG.replace("[order]", "[order], fields: {{order: redact}}")


@contextmanager
def environment(**said: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(said)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def pay(till: Till) -> None:
    till.chat(till.agent(calls(("pay", {"order": "K7QX2", "amount": 1})), says("done")), "go")


def test_the_tool_gets_the_value_and_the_store_a_token(tmp_path: Path) -> None:
    till = Till(folder=tmp_path, config=HIDING)
    with environment(**{VARIABLE: SECRET}):
        pay(till)
    assert till.sent == [("K7QX2", 1)]
    made = token("K7QX2", ("redact",), key_from(SECRET))
    (claim,) = till.rows(EffectClaimed)
    assert msgspec.json.decode(claim.args) == {"order": made, "amount": 1}
    answers = b"".join(bytes(row.response) for row in till.rows(ModelAnswered))
    assert b"K7QX2" not in answers
    assert made.encode() in answers


def test_without_the_key_nothing_is_paid_and_nothing_is_stored(tmp_path: Path) -> None:
    till = Till(folder=tmp_path, config=HIDING)
    pay(till)
    assert till.sent == []
    assert till.rows(EffectClaimed) == []
    assert till.rows(CursorAdvanced) == []
    assert b"K7QX2" not in (tmp_path / "guard.db").read_bytes()
    assert not any(
        b"K7QX2" in path.read_bytes() for path in tmp_path.glob("guard.db*") if path.is_file()
    )


def test_with_another_key_nothing_is_paid_twice(tmp_path: Path) -> None:
    """Its tokens would find nothing that was done."""
    till = Till(folder=tmp_path, config=HIDING)
    with environment(**{VARIABLE: SECRET}):
        pay(till)
    again = replace(till, sessions=InMemorySessionService())
    with environment(**{VARIABLE: f"{SECRET}, changed"}):
        pay(again)
    assert till.sent == [("K7QX2", 1)]
