"""An imported ledger holds no more of a person than one that the guard wrote."""

from __future__ import annotations

import json

import pytest

from backstop.adapters.chat import Selection, import_chat
from backstop.core.declaration import Declaration, Namespace
from backstop.core.ledgerfile import seal_lines, verify
from backstop.core.redaction import NoRedactionKey, RedactionKey, token
from tests.unit.adapters.test_chat import asks, user

HIDDEN = Declaration(tool="cancel", identity=("booking",), fields={"booking": ("redact",)})
KEY = RedactionKey(secret=b"a secret of the desk")
CHATS = json.dumps(
    [{"messages": [user("please"), asks(("c1", "cancel", {"booking": "K7QX2", "fee": 0.1}))]}]
).encode()


def imported(key: RedactionKey | None) -> bytes:
    header, events = import_chat(
        CHATS,
        name="chats.json",
        namespace=Namespace(agent="desk"),
        declarations={"cancel": HIDDEN},
        selection=Selection(),
        key=key,
    )
    return b"".join(seal_lines(header, events))


def test_declared_values_are_imported_as_tokens() -> None:
    ledger = imported(KEY)
    verify([ledger], name="l")
    assert b"K7QX2" not in ledger
    assert ledger.count(token("K7QX2", ("redact",), KEY).encode()) == 2  # the answer, the claim
    assert ledger.count(b'"fee":0.1') == 2


def test_without_a_key_they_are_not_imported() -> None:
    with pytest.raises(NoRedactionKey, match="cancel: a value is declared `redact`"):
        imported(None)
