"""Laws of the canonical form and of keys, tried on values that nobody would think of."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from backstop.core.canon import Json, canonical, parse, render
from backstop.core.declaration import Declaration, Namespace, Scope
from backstop.core.fields import coerce, difference, fold, normalise, normalise_fields, pointers
from backstop.core.identity import Identified, identify, identify_read, rekey, suggest
from tests.property.strategies import (
    arguments,
    coercible,
    declarations,
    floats,
    json_values,
    kinds,
    respelled,
    schemas,
    texts,
)

DESK = Namespace(agent="desk")


def call(members: dict[str, Any], declaration: Declaration) -> Identified:
    return identify(members, declaration, namespace=DESK, run="r", step="s")


def plain_equal(a: Json, b: Json) -> bool:
    """Equality as JSON has it, told without the canonical form: types first, then values."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(plain_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(plain_equal(a[name], b[name]) for name in a)
    if isinstance(a, str) != isinstance(b, str):
        return False
    return a == b


@given(json_values)
def test_a_canonical_text_is_a_fixed_point(value: Json) -> None:
    text = canonical(value)
    assert canonical(parse(text)) == text
    assert canonical(parse(text.encode())) == text


@given(json_values)
def test_rendering_is_idempotent(value: Json) -> None:
    once = render(value)
    assert plain_equal(render(once), once)
    assert canonical(once) == canonical(value)


@given(json_values, json_values)
def test_two_texts_are_equal_if_and_only_if_the_values_are(a: Json, b: Json) -> None:
    same = plain_equal(parse(canonical(a)), parse(canonical(b)))
    assert (canonical(a) == canonical(b)) is same


@given(st.data(), json_values)
def test_another_spelling_of_a_value_has_the_same_text(data: st.DataObject, value: Json) -> None:
    assert canonical(data.draw(respelled(value))) == canonical(value)


@given(floats)
def test_a_float_survives_its_canonical_text(number: float) -> None:
    assert float(canonical(number)) == number


@given(floats.filter(lambda number: abs(number) < 2**53))
def test_a_float_and_its_json_text_are_one_number(number: float) -> None:
    assert canonical(parse(repr(number))) == canonical(number)


@given(st.data(), arguments, declarations())
def test_a_key_is_stable_under_order_and_spelling(
    data: st.DataObject, members: dict[str, Json], declaration: Declaration
) -> None:
    other = data.draw(respelled(members))
    assert call(members, declaration) == call(other, declaration)


@given(arguments, declarations())
def test_identifying_what_was_identified_changes_nothing(
    members: dict[str, Json], declaration: Declaration
) -> None:
    once = call(members, declaration)
    again = call(once.arguments, declaration)
    assert (once.key, once.fingerprint) == (again.key, again.fingerprint)


@given(arguments, declarations())
def test_rekeying_under_the_rules_of_writing_changes_nothing(
    members: dict[str, Json], declaration: Declaration
) -> None:
    row = rekey(
        members,
        written_under=declaration,
        candidate=declaration,
        namespace=DESK,
        run="r",
        step="s",
    )
    assert row == call(members, declaration)


@given(arguments, arguments)
def test_without_a_declaration_two_keys_are_equal_iff_the_arguments_are(
    a: dict[str, Json], b: dict[str, Json]
) -> None:
    rules = Declaration(tool="f", scope=Scope.AGENT)
    same = canonical(a) == canonical(b)
    assert (call(a, rules).key == call(b, rules).key) is same
    assert (call(a, rules).fingerprint == call(b, rules).fingerprint) is same


@given(arguments, declarations())
def test_a_read_never_lacks_a_key(members: dict[str, Json], declaration: Declaration) -> None:
    read = identify_read(members, declaration, namespace=DESK, run="r", step="s")
    assert read.key


@given(coercible, schemas)
def test_coercing_is_idempotent(value: Json, schema: dict[str, Any]) -> None:
    once = coerce(value, schema)
    assert canonical(coerce(once, schema)) == canonical(once)


@given(coercible)
def test_nothing_is_coerced_without_a_schema(value: Json) -> None:
    assert canonical(coerce(value, {})) == canonical(value)


@given(coercible, kinds)
def test_normalising_is_idempotent(value: Json, chosen: tuple[str, ...]) -> None:
    assume("json" not in chosen)  # JSON text within JSON text is opened one layer at a time
    once = normalise(value, chosen)
    assert canonical(normalise(once, chosen)) == canonical(once)


@given(arguments, st.dictionaries(texts, kinds, max_size=3))
def test_normalising_touches_declared_fields_only(
    members: dict[str, Json], fields: dict[str, tuple[str, ...]]
) -> None:
    members = parse(canonical(members))  # type: ignore[assignment]  # an object stays one
    after = normalise_fields(members, fields)
    changed = {name for name in members if canonical(after[name]) != canonical(members[name])}
    tops = {name.removeprefix("/").split("/")[0] for name in fields} | fields.keys()
    assert changed <= {parse(canonical(name.replace("~1", "/"))) for name in tops} | tops


@given(json_values)
def test_folding_is_idempotent(value: Json) -> None:
    once = fold(value)
    assert canonical(fold(once)) == canonical(once)


@given(json_values, json_values)
def test_pointers_and_differences_are_symmetric_and_empty_for_equals(a: Json, b: Json) -> None:
    same = canonical(a) == canonical(b)
    assert (pointers(a, b) == ()) is same
    assert (difference(a, b) == ()) is same
    assert pointers(a, b) == pointers(b, a)
    assert difference(a, b) == difference(b, a)
    assert suggest(a, b) == suggest(b, a)


@given(texts, texts)
def test_two_texts_that_fold_alike_have_a_named_difference(a: str, b: str) -> None:
    assume(canonical(a) != canonical(b))
    assert ("other" in difference(a, b)) is (fold(a) != fold(b))


def test_a_key_is_the_same_in_every_process_and_under_every_hash_seed() -> None:
    """K14, F23: nothing of a process is in a key."""
    code = """if True:
        from backstop.core.declaration import Declaration, Namespace
        from backstop.core.identity import identify
        members = {"ids": {"x", "y", "z", 3, None}, "b": {"n": frozenset("hello")}, "a": 1.5}
        found = identify(
            members, Declaration(tool="f", fields={"b": ("trim",)}),
            namespace=Namespace(agent="a"), run="r", step="s",
        )
        print(found.key, found.fingerprint)
    """
    seeds = [0, 1, 2, random.Random(7).randrange(1, 2**32)]
    keys = {
        subprocess.check_output(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": str(seed)}
        )
        for seed in seeds
    }
    assert len(keys) == 1
