"""What is taken a short way comes out as by the long way: text, reading, coercion, keys."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from backstop.core.canon import CANON_VERSION, Json, NotCanonical, canonical, digest, parse
from backstop.core.coercion import coerce, left_alone
from backstop.core.declaration import Declaration, Namespace
from backstop.core.identity import identify
from backstop.core.literal import literal, written
from backstop.core.plain import spelled, text_of
from backstop.core.strict import strict
from tests.property.strategies import (
    arguments,
    coercible,
    json_values,
    names,
    objects,
    schemas,
)

BITS = st.sampled_from(
    [
        *("{", "}", "[", "]", ":", ",", " ", '"', '"a"', '"a":', '"a" :', "1", "-0", "2.50", "1e5"),
        *("1E400", "1e-400", "NaN", "null", "true", '"\\u0022:"', '"\\u0061":', '"\\ud800"'),
        *('"\\u003a"', '"\u00e9":', '"e\u0301":', '"\\u00e9":', '"\\":"', "\ufeff", "\x00"),
        *("0.1", "123456789012345678901", "12.0", '{"a":1,"a":2}', '{"a":{"b":1},"a":3}'),
    ]
)
NAMED = ['"a":', '"a" :', '"\\u0061":', '"b":', '"\\"":', '"\\u0022":', '"\u00e9":', '"e\u0301":']
LEAVES = [
    "1",
    "2.50",
    "-0.0",
    "1e3",
    "1E400",
    "5e-324",
    "null",
    '"x"',
    '"\\":"',
    '"\\u003a"',
    '"\u00e9"',
]
NESTED = st.recursive(
    st.sampled_from(LEAVES),
    lambda below: (
        st.lists(below, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(st.sampled_from(NAMED), below).map(" ".join), max_size=3).map(
            lambda members: f"{{{','.join(members)}}}"
        )
    ),
    max_leaves=8,
)
ANY_TEXT = st.text(st.characters(max_codepoint=0x17F), max_size=12)


@given(json_values)
def test_what_is_spelled_is_the_text_and_what_the_text_says(value: Json) -> None:
    text, read = spelled(value)
    assert text == canonical(value)
    assert read == parse(text)
    assert canonical(read) == text


@given(st.dictionaries(ANY_TEXT, ANY_TEXT | st.integers() | st.booleans() | st.none(), max_size=6))
def test_what_is_flat_has_one_text_by_the_short_way_and_the_long(value: dict[str, Any]) -> None:
    assert text_of(value) == canonical(value)
    assert spelled(value) == (canonical(value), parse(canonical(value)))


def _read(reading: Any, data: bytes) -> Any:
    try:
        value = reading(data)
    except NotCanonical as refused:
        return str(refused), refused.slug
    return value, literal(value)


@given(NESTED | st.lists(BITS, max_size=12).map("".join) | st.text(max_size=12))
@example('{"a":1,"a":2}')
@example('{"\u00e9":1,"e\u0301":2}')
@example('{"\\":":1,"a" :1,"a":2}')
@example('{"a":"\\u0022:","a":2}')
@example('{"a":"\\u003a\\"\\u003a","a":2}')
def test_whatever_is_read_strictly_is_read_alike_or_refused_alike(text: str) -> None:
    data = text.encode(errors="surrogatepass")
    assert _read(strict, data) == _read(parse, data)


@given(json_values, st.booleans(), st.sampled_from([None, (",", ":"), (" , ", " : ")]))
def test_json_of_any_writer_is_read_alike(
    value: Json, ascii_only: bool, separators: tuple[str, str] | None
) -> None:
    plain = json.loads(canonical(value))
    data = json.dumps(plain, ensure_ascii=ascii_only, separators=separators).encode()
    assert _read(strict, data) == _read(parse, data)
    assert literal(parse(data)).encode() == written(parse(data))


@pytest.mark.parametrize("digits", [3999, 4000, 4001, 5000])
def test_numbers_without_end_are_refused_by_the_short_way_too(digits: int) -> None:
    for text in (f"[{'7' * digits}]", f'"{"7" * digits}"', f"[0.{'7' * digits}]"):
        assert _read(strict, text.encode()) == _read(parse, text.encode())


@pytest.mark.parametrize("deep", [100, 101])
def test_what_is_nested_too_deep_is_refused_by_the_short_way_too(deep: int) -> None:
    data = b"[" * deep + b"]" * deep
    assert _read(strict, data) == _read(parse, data)


def test_every_sign_of_ascii_is_written_alike_by_the_short_way_and_the_long() -> None:
    signs = [chr(code) for code in range(128)]
    assert [text_of(sign) for sign in signs] == [canonical(sign) for sign in signs]
    named = {f"{sign}{sign}a": sign for sign in signs}
    assert text_of(named) == canonical(named)


@given(st.integers(min_value=60, max_value=70), st.integers(min_value=-2, max_value=2))
def test_numbers_about_64_bits_are_exact(bits: int, more: int) -> None:
    assert text_of({"n": 2**bits + more}) == f'{{"n":{2**bits + more}}}'
    assert text_of({"n": -(2**bits) + more}) == f'{{"n":{-(2**bits) + more}}}'


@pytest.mark.parametrize(
    "value",
    [
        {"a": "\ud800"},
        {"\udc00": 1},
        "\ud800",
        {1: "a"},
        {"a": float("nan")},
        {"n": 10**4000},
        {"n": 10**5000},
    ],
)
def test_what_has_no_spelling_is_refused_by_the_short_way_too(value: object) -> None:
    with pytest.raises(NotCanonical):
        text_of(value)
    with pytest.raises(NotCanonical):
        spelled(value)


class Loud(str):
    """A text that says something else when it is asked."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.upper()


def test_texts_of_other_kinds_go_the_long_way() -> None:
    assert text_of({"a": Loud("x")}) == canonical({"a": Loud("x")})
    assert text_of({Loud("a"): "x"}) == canonical({Loud("a"): "x"})


@given(st.dictionaries(names, schemas, min_size=1, max_size=3), st.data())
def test_a_schema_changes_no_value_of_a_type_that_it_leaves_alone(
    properties: dict[str, Any], data: st.DataObject
) -> None:
    schema = {"type": "object", "properties": properties}
    alone = left_alone(schema)
    for name in properties:
        value = data.draw(coercible)
        if type(value) in alone.get(name, frozenset()):
            assert coerce({name: value}, schema) == {name: value}
            assert canonical(coerce({name: value}, schema)) == canonical({name: value})


def test_what_a_schema_leaves_alone_is_told_of_plain_parts_only() -> None:
    text, number, null = {"type": "string"}, {"type": "integer"}, {"type": "null"}
    parts: dict[str, tuple[object, set[type]]] = {
        "text": (text, {str}),
        "number": ({"type": "NUMBER"}, {int, Decimal}),
        "maybe": ({"anyOf": [text, null]}, {str, type(None)}),
        "nullable": ({"type": "integer", "nullable": True}, {int, type(None)}),
        "listed": ({"anyOf": [{"enum": ["a"], "type": "string"}, number]}, {int}),
        "within": ({"anyOf": [{"anyOf": [text]}, null]}, set()),
        "elsewhere": ({"$ref": "#/$defs/a"}, set()),
        "in parts": ({"allOf": [text]}, set()),
        "spelled anew": ({"type": "string", "format": "uuid"}, set()),
        "list": ({"type": "array"}, set()),
        "anything": ({}, set()),
    }
    schema = {"properties": {name: part for name, (part, _) in parts.items()}}
    assert left_alone(schema) == {name: types for name, (_, types) in parts.items()}
    assert left_alone({**schema, "properties": {"odd": True}}) == {}
    for other in ({"$ref": "#/x"}, {"allOf": [schema]}, {"anyOf": [schema]}, {"properties": 1}):
        assert left_alone({**schema, **other}) == {}


@given(schemas, objects(coercible))
def test_a_schema_that_leaves_every_member_alone_changes_nothing(
    schema: dict[str, Any], members: dict[str, Any]
) -> None:
    alone = left_alone(schema)
    assume(all(type(value) in alone.get(name, ()) for name, value in members.items()))
    assert canonical(coerce(members, schema)) == canonical(members)


@given(arguments, st.text(max_size=4), st.text(max_size=4))
def test_a_key_is_the_digest_of_the_parts_that_rule_k1_names(
    members: dict[str, Any], agent: str, run: str
) -> None:
    """K1: written out here once more, by the long way."""
    assume(any(value is not None for value in members.values()))
    try:
        canonical([agent, run])
    except NotCanonical:
        assume(False)
    known = Declaration(tool="pay")
    named = identify(members, known, namespace=Namespace(agent=agent), run=run, step="s")
    parts = ["backstop.key", CANON_VERSION, [agent, "", ""], "pay", named.identity]
    assert named.key == digest(canonical([*parts, "run", run, 0]))
    assert named.fingerprint == digest(canonical(named.arguments))
