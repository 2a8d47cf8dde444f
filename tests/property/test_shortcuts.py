"""What is taken a short way comes out as by the long way: canonical text, coercion, keys."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from backstop.core.canon import CANON_VERSION, Json, NotCanonical, canonical, digest, parse, spelled
from backstop.core.coercion import coerce, left_alone
from backstop.core.identity import Declaration, Namespace, identify
from tests.property.strategies import arguments, coercible, json_values, names, objects, schemas


@given(json_values)
def test_what_is_spelled_is_the_text_and_what_the_text_says(value: Json) -> None:
    text, read = spelled(value)
    assert text == canonical(value)
    assert read == parse(text)
    assert canonical(read) == text


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
