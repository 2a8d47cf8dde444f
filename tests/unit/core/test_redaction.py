"""Declared values become keyed tokens, and still compare."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstop.core.canon import NotCanonical, canonical
from backstop.core.declaration import Declaration, Namespace
from backstop.core.identity import identify
from backstop.core.redaction import (
    HIDDEN,
    NoRedactionKey,
    Redaction,
    RedactionKey,
    is_token,
    key_from,
    redacted_fields,
    token,
)

KEY = RedactionKey(secret=b"a secret of the desk")


def mail(schema: dict[str, Any] | None = None, **fields: tuple[str, ...]) -> Declaration:
    return Declaration(tool="mail", identity=("to",), fields=fields, schema=schema or {})


def kept(
    arguments: dict[str, object], declaration: Declaration, key: RedactionKey | None = KEY
) -> dict[str, Any]:
    redaction = Redaction(declarations={declaration.tool: declaration}, key=key)
    return dict(redaction.arguments(arguments, declaration))


def key_of(arguments: dict[str, Any], declaration: Declaration) -> str:
    return identify(arguments, declaration, namespace=Namespace(agent="a"), run="r", step="s").key


PLAIN = mail(to=("redact",))
EMAIL = mail(to=("email", "redact"))


def test_a_declared_value_becomes_a_token_and_the_others_stay() -> None:
    found = kept({"to": "ana@example.org", "n": 1}, PLAIN)
    assert is_token(found["to"])
    assert found["n"] == 1
    assert "ana" not in canonical(found)


def test_nothing_declared_changes_nothing() -> None:
    arguments: dict[str, object] = {"to": "ana@example.org"}
    nothing = Redaction(key=KEY)
    assert nothing.arguments(arguments, mail()) is arguments
    assert nothing.told("mail", arguments) is arguments
    assert not nothing.hides_anything


def test_equal_values_have_equal_keys_and_others_other_ones() -> None:
    keys = {
        key_of(kept({"to": text}, EMAIL), EMAIL)
        for text in (" Ana@Example.org", "ana@example.org", "ANA@EXAMPLE.ORG ")
    }
    assert len(keys) == 1
    assert key_of(kept({"to": "bob@example.org"}, EMAIL), EMAIL) not in keys


def test_a_value_is_read_as_the_schema_means_it() -> None:
    typed = mail({"type": "object", "properties": {"to": {"type": "integer"}}}, to=("redact",))
    assert kept({"to": "42"}, typed) == kept({"to": 42.0}, typed)
    assert kept({"to": "42"}, PLAIN) != kept({"to": 42}, PLAIN)


@given(st.recursive(st.none() | st.text() | st.integers() | st.booleans(), st.lists))
def test_what_is_redacted_once_stays_as_it_is(value: Any) -> None:
    """Idempotence: also without the key, so that a replay needs none."""
    once = kept({"to": value}, EMAIL)
    assert kept(dict(once), EMAIL) == once
    assert kept(dict(once), EMAIL, key=None) == once


def test_tokens_of_other_keys_differ() -> None:
    other = RedactionKey(secret=b"another secret altogether")
    assert token("ana", ("redact",), KEY) != token("ana", ("redact",), other)


def test_null_and_the_declared_default_say_nothing_of_anybody() -> None:
    schema = {"properties": {"to": {"type": "string", "default": "desk@example.org"}}}
    declared = mail(schema, to=("email", "redact"))
    assert kept({"to": None}, declared) == {"to": None}
    passed = kept({"to": "Desk@example.org"}, declared)
    assert key_of(passed, declared) == key_of({}, declared)


def test_each_item_of_a_list_is_a_token_and_a_set_of_them_is_a_set() -> None:
    declared = mail(to=("set", "casefold", "redact"))
    first, second = kept({"to": ["Ana", "bob"]}, declared), kept({"to": ["BOB", "ana"]}, declared)
    assert all(map(is_token, first["to"]))
    assert first != second
    assert key_of(first, declared) == key_of(second, declared)


def test_a_field_is_found_by_pointer_in_lists_and_in_json_text() -> None:
    declared = Declaration(
        tool="mail", fields={"/customer/email": ("redact",), "customer": ("json",)}
    )
    found = kept({"customer": [{"email": "ana@x.org", "id": 1}, {"id": 2}, 3]}, declared)
    assert is_token(found["customer"][0]["email"])
    assert found["customer"][1:] == [{"id": 2}, 3]
    text = kept({"customer": '{"email": "ana@x.org"}'}, declared)["customer"]
    assert text == f'{{"email":"{found["customer"][0]["email"]}"}}'
    assert kept({"customer": "no json"}, declared) == {"customer": "no json"}
    assert kept({"other": 1}, declared) == {"other": 1}


def test_json_text_of_a_list_is_redacted_item_by_item() -> None:
    declared = mail(to=("json", "redact"))
    assert kept({"to": '["ana"]'}, declared)["to"] == canonical(
        kept({"to": ["ana"]}, declared)["to"]
    )
    assert is_token(kept({"to": '{"a": 1}'}, declared)["to"])


def test_what_is_not_declared_keeps_its_type_and_its_name() -> None:
    amount = 12.5
    declared = Declaration(tool="mail", fields={"to": ("redact",), "/who/mail": ("redact",)})
    given: dict[str, object] = {"to": "ana", "n": amount, "who": {"mail": "a", "n": 0.5}}
    found = kept(given, declared)
    assert found["n"] is amount
    assert type(found["who"]["n"]) is float


def test_a_name_is_found_however_it_is_composed() -> None:
    declared = Declaration(tool="mail", fields={"\u00e9": ("redact",)})
    assert list(map(is_token, kept({"e\u0301": "ana"}, declared).values())) == [True]


def test_without_a_key_a_value_is_refused_and_never_stored() -> None:
    with pytest.raises(NoRedactionKey) as caught:
        kept({"to": "ana@example.org"}, PLAIN, key=None)
    assert caught.value.slug == "redaction-key"
    assert "ana@" not in str(caught.value)
    assert kept({"n": 1}, PLAIN, key=None) == {"n": 1}


def test_a_call_in_a_models_answer_is_redacted_wherever_it_stands() -> None:
    redaction = Redaction(declarations={"mail": PLAIN}, key=KEY)
    call = {"name": "mail", "args": {"to": "ana@example.org", "n": 1}}
    hidden = {"name": "mail", "args": kept({"to": "ana@example.org", "n": 1}, PLAIN)}
    other = {"name": "lookup", "args": {"to": "ana@example.org"}}
    answer = {"content": {"parts": [{"function_call": call}, {"function_call": other}, "text"]}}
    assert redaction.answer(answer) == {
        "content": {"parts": [{"function_call": hidden}, {"function_call": other}, "text"]}
    }
    asked = {"name": "confirm", "args": {"originalFunctionCall": call}}
    assert redaction.answer([asked]) == [
        {"name": "confirm", "args": {"originalFunctionCall": hidden}}
    ]


def test_a_call_that_is_only_told_of_hides_its_values_without_a_key_too() -> None:
    redaction = Redaction(declarations={"mail": PLAIN})
    assert redaction.told("mail", {"to": "ana", "n": 1}) == {"to": HIDDEN, "n": 1}
    assert redaction.told("mail", {"to": object()}) == {"to": HIDDEN}
    assert redaction.hides_anything


def test_what_has_no_canonical_form_is_refused_as_ever() -> None:
    with pytest.raises(NotCanonical):
        kept({"to": float("nan")}, PLAIN)


def test_a_key_that_could_be_guessed_is_none() -> None:
    assert key_from("  0123456789abcdef\n").secret == b"0123456789abcdef"
    with pytest.raises(NoRedactionKey, match="15 bytes"):
        key_from("0123456789abcde")


def test_a_key_is_never_shown() -> None:
    assert "secret of" not in repr(Redaction(key=KEY))


def test_the_redacted_fields_of_a_tool() -> None:
    declared = mail(to=("email", "redact"), n=("volatile",))
    assert redacted_fields(declared) == {"to": ("email", "redact")}
