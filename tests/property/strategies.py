"""What the laws are tried on: JSON values, Python values that mean the same, declarations."""

from __future__ import annotations

import unicodedata
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from backstop.core.canon import Json
from backstop.core.declaration import Declaration, Scope

# Text without half characters; composed and decomposed letters are likely on purpose.
texts = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("aAe\u0301\u00e9-_ 1")),
    max_size=12,
)
names = texts
decimals = st.decimals(
    min_value=Decimal("-1e20"), max_value=Decimal("1e20"), allow_nan=False, allow_infinity=False
).filter(lambda number: number == 0 or abs(number) > Decimal("1e-300"))
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(), decimals, texts
)


def composed(members: dict[str, Any]) -> bool:
    """Have all names of the mapping different NFC forms?"""
    return len({unicodedata.normalize("NFC", name) for name in members}) == len(members)


def objects(values: st.SearchStrategy[Any], max_size: int = 4) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings whose names do not collide."""
    return st.dictionaries(names, values, max_size=max_size).filter(composed)


json_values: st.SearchStrategy[Json] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | objects(inner), max_leaves=12
)
arguments: st.SearchStrategy[dict[str, Json]] = objects(json_values)


@st.composite
def respelled(draw: st.DrawFn, value: Any) -> Any:
    """Another Python value that means the same as the JSON value."""
    if isinstance(value, dict):
        members = [(draw(respelled_text(name)), draw(respelled(v))) for name, v in value.items()]
        shuffled = dict(draw(st.permutations(members)))
        return draw(st.sampled_from([shuffled, OrderedDict(shuffled), MappingProxyType(shuffled)]))
    if isinstance(value, list):
        return draw(st.sampled_from([list, tuple]))([draw(respelled(item)) for item in value])
    if isinstance(value, str):
        return draw(respelled_text(value))
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        same: list[Any] = [value, Decimal(value), Fraction(value)]
        same += [Decimal(f"{value}E0")] if isinstance(value, int) else [value + Decimal("0E-40")]
        if isinstance(value, int) and abs(value) < 2**53:
            same.append(float(value))
        return draw(st.sampled_from([one for one in same if one == value]))
    return value


@st.composite
def respelled_text(draw: st.DrawFn, text: str) -> str:
    """The text in a canonically equivalent form."""
    return unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD"])), text)


kinds = st.lists(
    st.sampled_from(["set", "json", "email", "date-time", "slug", "casefold", "trim", "money"]),
    max_size=3,
    unique=True,
).map(tuple)

schemas: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(
                ["integer", "number", "boolean", "string", "array", "object", "null", "STRING"]
            ),
            "format": st.sampled_from(["date-time", "uuid", "other"]),
            "nullable": st.booleans(),
            "enum": st.lists(scalars, max_size=2),
        },
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries(
            {"type": st.just("object"), "additionalProperties": inner},
            optional={"properties": st.dictionaries(names, inner, max_size=2)},
        ),
    ),
    max_leaves=5,
)


@st.composite
def declarations(draw: st.DrawFn) -> Declaration:
    """Declarations with any scope, some field kinds and some defaults."""
    fields = draw(st.dictionaries(names, kinds, max_size=3))
    defaults = draw(objects(scalars, max_size=2))
    properties = {name: {"default": value} for name, value in defaults.items()}
    return Declaration(
        tool=draw(st.sampled_from(["pay", "mail"])),
        scope=draw(st.sampled_from(Scope)),
        fields=fields,
        schema={"properties": properties} if properties else {},
    )


number_texts = st.one_of(
    st.integers().map(str), decimals.map(str), st.sampled_from(["true", "false", "[]", "{}", "1e3"])
)
coercible: st.SearchStrategy[Json] = st.recursive(
    st.one_of(scalars, number_texts, st.datetimes().map(lambda moment: moment.isoformat() + "Z")),
    lambda inner: st.lists(inner, max_size=3) | objects(inner, max_size=3),
    max_leaves=6,
)
