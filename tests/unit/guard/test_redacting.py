"""A request has one digest, whether it holds a value or the token that is recorded of it."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from backstop.adk.requests import RequestDigester
from backstop.core.declaration import Declaration
from backstop.core.redaction import Redaction, RedactionKey
from backstop.guard.plugin.redacting import RedactedCalls

PAY = Declaration(tool="pay", fields={"to": ("casefold", "redact")})
REDACTION = Redaction(
    declarations={"pay": PAY, "look": Declaration(tool="look", effect=False)},
    key=RedactionKey(secret=b"a secret of the desk"),
)
PLAIN: dict[str, Any] = {"to": "Ana", "amount": 12.5}
TOKEN = dict(REDACTION.told("pay", PLAIN))


def call(name: str, args: dict[str, Any]) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def retold(name: str, args: object, fence: str = "") -> types.Part:
    said = f"[buyer] called tool `{name}` with parameters:\n{fence}{args}{fence}"
    return types.Part(text=said)


def contents(*parts: types.Part, redaction: Redaction | None = None) -> str:
    request = LlmRequest(contents=[types.Content(role="model", parts=list(parts))])
    calls = None if redaction is None else RedactedCalls(redaction)
    return RequestDigester().digest(request, calls).contents


def test_a_call_with_a_value_is_digested_as_the_call_with_its_token() -> None:
    asked = contents(call("pay", PLAIN), redaction=REDACTION)
    assert asked == contents(call("pay", TOKEN))
    assert asked == contents(call("pay", TOKEN), redaction=REDACTION)
    assert asked != contents(call("pay", PLAIN))
    assert asked == contents(call("pay", {**PLAIN, "to": "ANA"}), redaction=REDACTION)


@pytest.mark.parametrize("fence", ["", "\n<<<\n"])
def test_a_call_that_is_retold_in_text_too(fence: str) -> None:
    plain, token = (dict(sorted(args.items())) for args in (PLAIN, TOKEN))
    assert contents(retold("pay", plain, fence), redaction=REDACTION) == contents(
        retold("pay", token, fence)
    )


@pytest.mark.parametrize(
    "part",
    [
        call("look", {"to": "Ana"}),
        call("unknown", {"to": "Ana"}),
        retold("look", {"to": "Ana"}),
        retold("pay", "nothing"),
        retold("pay", "{no dict"),
        retold("pay", "{'to': Ana}"),
        types.Part(text="Ana {is} here"),
    ],
    ids=["read", "unknown", "retold", "no arguments", "cut off", "no literal", "text"],
)
def test_all_else_is_digested_as_ever(part: types.Part) -> None:
    assert contents(part, redaction=REDACTION) == contents(part)


def test_a_call_without_a_canonical_form_has_a_digest_that_hides_it() -> None:
    odd = call("pay", {"to": object()})
    assert contents(odd, redaction=REDACTION) == contents(
        call("pay", {"args": "hmac:none"}), redaction=REDACTION
    )


def test_where_nothing_is_hidden_nothing_is_looked_at() -> None:
    assert not RedactedCalls(Redaction(declarations={"look": Declaration(tool="look")}))
    assert RedactedCalls(REDACTION)
