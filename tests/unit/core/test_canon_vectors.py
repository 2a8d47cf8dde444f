"""The agreed vectors: pairs of calls and whether they have one idempotency key.

Read from the shared folder, so that a vector added there is a test here; what the vectors
say in Python or in prose is spelled out below by name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from backstop.core.canon import NotCanonical, parse
from backstop.core.declaration import Declaration, Namespace, Scope
from backstop.core.identity import Identified, IdentityRefused, identify

HERE = Namespace(agent="desk")

SAME, DIFF, REFUSE = "SAME", "DIFF", "REFUSE"


class Pay(BaseModel):
    id: int
    day: date


class Order(BaseModel):
    order_id: int = Field(alias="orderId")


@dataclass
class Row:
    a: int


def key(
    arguments: object, declaration: Declaration | None = None, namespace: Namespace = HERE
) -> Identified:
    assert isinstance(arguments, dict)
    declaration = declaration or Declaration(tool="f")
    return identify(arguments, declaration, namespace=namespace, run="r1", step="s1")


def compared(a: Callable[[], Identified], b: Callable[[], Identified]) -> str:
    try:
        return SAME if a().key == b().key else DIFF
    except (IdentityRefused, NotCanonical):
        return REFUSE


def declared(hint: str) -> Declaration:
    """The declaration that a vector's `schema` column describes."""
    name, _, kind = hint.partition(": ")
    if hint == "def f(a,b=None)":
        return Declaration(tool="f", schema={"properties": {"a": {}, "b": {"default": None}}})
    if name == "identity":
        return Declaration(tool="f", identity=tuple(kind.strip("[]").split(", ")))
    if kind in {"integer", "string"}:
        return Declaration(tool="f", schema={"properties": {name: {"type": kind}}})
    if kind:
        return Declaration(tool="f", fields={name: (kind,)})
    return Declaration(tool="f")


def from_text(vector: dict[str, Any]) -> str:
    rules = declared(vector["schema"])
    return compared(lambda: key(parse(vector["a"]), rules), lambda: key(parse(vector["b"]), rules))


def of_values(a: object, b: object) -> Callable[[], str]:
    return lambda: compared(lambda: key({"x": a}), lambda: key({"x": b}))


def with_hash_seed(seed: int, members: str) -> str:
    code = f"from backstop.core.canon import canonical; print(canonical({members}))"
    env = {**os.environ, "PYTHONHASHSEED": str(seed)}
    return subprocess.check_output([sys.executable, "-c", code], env=env, text=True)


def sets_in_two_processes() -> str:
    a, b = with_hash_seed(1, "{'x','y','z'}"), with_hash_seed(2, "{'z','y','x'}")
    return SAME if a == b == '["x","y","z"]\n' else DIFF


def default_changed() -> str:
    def mail(default: str) -> Identified:
        properties = {"to": {"type": "string"}, "priority": {"default": default}}
        return key({"to": "x"}, Declaration(tool="mail", schema={"properties": properties}))

    old, new = mail("normal"), mail("high")
    assert old.key == new.key
    return "DIFF (MUTATED)" if old.fingerprint != new.fingerprint else SAME


def json_text_field() -> str:
    a, b = {"body": '{"a":1,"b":2}'}, {"body": '{"b":2,"a":1}'}
    rules = Declaration(tool="f", fields={"body": ("json",)})
    plain = compared(lambda: key(a), lambda: key(b))
    return f"{plain}; {compared(lambda: key(a, rules), lambda: key(b, rules))} if declared json"


def confirm_flag() -> str:
    rules = Declaration(tool="f", fields={"confirm_duplicate": ("override",)})
    first, again = key({"a": 5}, rules), key({"a": 5, "confirm_duplicate": True}, rules)
    assert first.override is None
    assert again.override == {"confirm_duplicate": True}
    return "SAME + override" if first.key == again.key else DIFF


def empty_identity() -> str:
    assert key({}, Declaration(tool="f", scope=Scope.RUN)).key
    outcome = compared(lambda: key({}), lambda: key({}))
    return f"not protected / {outcome}"


SPELLED_OUT: dict[str, Callable[[], str]] = {
    "Decimal scale": of_values(Decimal("10.0"), Decimal("10.00")),
    "default changed by the PR": default_changed,
    "other tool": lambda: compared(
        lambda: key({"a": 1}, Declaration(tool="f")), lambda: key({"a": 1}, Declaration(tool="g"))
    ),
    "other tenant": lambda: compared(
        lambda: key({"a": 1}, namespace=Namespace(agent="desk", app="A")),
        lambda: key({"a": 1}, namespace=Namespace(agent="desk", app="B")),
    ),
    "set": sets_in_two_processes,
    "bytes vs its repr": of_values(b"x", "b'x'"),
    "bytes": of_values(b"x", b"x"),
    "UUID": of_values(UUID(int=1), str(UUID(int=1))),
    "pydantic vs dict": of_values(Pay(id=1, day=date(2026, 1, 2)), {"id": 1, "day": "2026-01-02"}),
    "pydantic alias": of_values(Order(orderId=1), {"orderId": 1}),
    "dataclass vs dict": of_values(Row(a=1), {"a": 1}),
    "tuple vs list": of_values((1, 2), [1, 2]),
    "JSON text field": json_text_field,
    "confirm flag": confirm_flag,
    "empty identity": empty_identity,
}

# The text vectors once more, so that they hold where the shared folder is absent.
TEXTS: list[tuple[str, str, str, str, str]] = [
    ("K14 array declared set", '{"ids":["b","a"]}', '{"ids":["a","b"]}', "ids: set", SAME),
    ("K21 under integer", '{"n":"42"}', '{"n":42}', "n: integer", SAME),
    ("K20 string ids keep zeros", '{"id":"0123"}', '{"id":"123"}', "id: string", DIFF),
    ("K21 without a schema", '{"n":"42"}', '{"n":42}', "", DIFF),
    ("K08", '{"amt":9007199254740993}', '{"amt":9007199254740992}', "", DIFF),
    ("K09 minus zero", '{"x":-0.0}', '{"x":0.0}', "", SAME),
    ("K11", '{"x":1e-05}', '{"x":0.00001}', "", SAME),
    ("K10", '{"x":1e6}', '{"x":1000000}', "", SAME),
    ("K10 NaN", '{"x":NaN}', '{"x":NaN}', "", REFUSE),
    ("K12 NFC", '{"s":"Caf\u00e9"}', '{"s":"Cafe\u0301"}', "", SAME),
    ("K13 angstrom", '{"s":"\u212b"}', '{"s":"\u00c5"}', "", SAME),
    ("compatibility form", '{"s":"\ufb01"}', '{"s":"fi"}', "", DIFF),
    ("case", '{"s":"Alice"}', '{"s":"alice"}', "", DIFF),
    ("case, declared", '{"s":"Alice"}', '{"s":"alice"}', "s: casefold", SAME),
    ("trailing blank", '{"s":"a "}', '{"s":"a"}', "", DIFF),
    ("trailing blank, declared", '{"s":"a "}', '{"s":"a"}', "s: trim", SAME),
    (
        "naive time",
        '{"t":"2026-01-01T12:00:00"}',
        '{"t":"2026-01-01T12:00:00Z"}',
        "t: date-time",
        DIFF,
    ),
    (
        "fraction digits",
        '{"t":"2026-01-01T12:00:00.100Z"}',
        '{"t":"2026-01-01T12:00:00.1Z"}',
        "t: date-time",
        SAME,
    ),
    ("default null", '{"a":1,"b":null}', '{"a":1}', "def f(a,b=None)", SAME),
    ("no default known", '{"a":1,"b":null}', '{"a":1}', "", DIFF),
    ("K15 swapped keywords", '{"a":1,"b":2}', '{"a":2,"b":1}', "", DIFF),
    ("duplicate member", '{"a":1,"a":2}', '{"a":2}', "", REFUSE),
    (
        "K05 all null",
        '{"user":null,"order":null}',
        '{"user":null,"order":null}',
        "identity: [user, order]",
        REFUSE,
    ),
]


@pytest.mark.parametrize(
    ("a", "b", "schema", "expected"), [case[1:] for case in TEXTS], ids=[case[0] for case in TEXTS]
)
def test_two_texts_have_one_key_or_two(a: str, b: str, schema: str, expected: str) -> None:
    assert from_text({"a": a, "b": b, "schema": schema}) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Decimal scale", SAME),
        ("default changed by the PR", "DIFF (MUTATED)"),
        ("other tool", DIFF),
        ("other tenant", DIFF),
        ("set", SAME),
        ("bytes vs its repr", DIFF),
        ("bytes", SAME),
        ("UUID", SAME),
        ("pydantic vs dict", SAME),
        ("pydantic alias", SAME),
        ("dataclass vs dict", SAME),
        ("tuple vs list", SAME),
        ("JSON text field", "DIFF; SAME if declared json"),
        ("confirm flag", "SAME + override"),
        ("empty identity", "not protected / REFUSE"),
    ],
)
def test_what_a_vector_spells_out_holds(name: str, expected: str) -> None:
    assert SPELLED_OUT[name]() == expected


def test_every_shared_vector_comes_out_right(shared: Path) -> None:
    text = (shared / "cases" / "canon_vectors.json").read_text(encoding="utf-8")
    vectors = json.loads(text)["vectors"]
    assert len(vectors) >= 36
    wrong = {
        vector["name"]: (vector["expect"], found)
        for vector in vectors
        if (found := SPELLED_OUT.get(vector["name"], lambda v=vector: from_text(v))())
        != vector["expect"].removesuffix(" (no identity)")
    }
    assert wrong == {}
