"""K2, K3: arguments that are absent, defaults that change, and rows of other declarations."""

from __future__ import annotations

from typing import Any

import pytest

from backstop.core.declaration import Declaration
from backstop.core.identity import (
    IdentityRefused,
    complete,
    rekey,
)
from tests.unit.core.test_identity import DESK, call, schema


def test_an_absent_optional_argument_is_null() -> None:
    rules = Declaration(tool="f", identity=("a", "b"), schema={"properties": {"a": {}, "b": {}}})
    assert call({"b": 1}, rules).key == call({"a": None, "b": 1}, rules).key


def test_k2_an_argument_equal_to_its_default_is_as_good_as_absent() -> None:
    rules = Declaration(tool="f", schema=schema(("a",), b=None, n=3))
    one = call({"a": 1}, rules)
    for spelled in ({"a": 1, "b": None}, {"a": 1, "n": 3.0}, {"a": 1, "b": None, "n": 3}):
        two = call(spelled, rules)
        assert (one.key, one.fingerprint) == (two.key, two.fingerprint)
    assert one.arguments == {"a": 1, "b": None, "n": 3}
    assert one.identity == {"a": 1}
    assert call({"a": 1, "n": 4}, rules).identity == {"a": 1, "n": 4}


def test_k2_a_default_is_compared_as_the_field_reads_it() -> None:
    rules = Declaration(
        tool="f",
        fields={"v": ("slug",)},
        schema={"properties": {"a": {}, "v": {"type": "string", "default": "ACME Corp"}}},
    )
    assert call({"a": 1}, rules).key == call({"a": 1, "v": "acme-corp"}, rules).key


def test_k2_a_changed_default_is_mutated() -> None:
    """K2: H `mail{to}` with default normal, N's default is high; identity undeclared."""
    old = Declaration(tool="mail", schema=schema(("to",), priority="normal"))
    new = Declaration(tool="mail", schema=schema(("to",), priority="high"))
    row = rekey({"to": "x"}, written_under=old, candidate=new, namespace=DESK, run="r1", step="s1")
    intent = call({"to": "x"}, new)
    assert row.key == call({"to": "x"}, old).key == intent.key
    assert row.fingerprint != intent.fingerprint
    assert (row.arguments["priority"], intent.arguments["priority"]) == ("normal", "high")


def test_k2_a_changed_default_that_the_caller_never_relied_on_is_no_finding() -> None:
    old = Declaration(tool="mail", schema=schema(("to",), priority="normal"))
    new = Declaration(tool="mail", schema=schema(("to",), priority="high"))
    for priority in ("normal", "high", "low"):
        arguments = {"to": "x", "priority": priority}
        row = rekey(
            arguments, written_under=old, candidate=new, namespace=DESK, run="r1", step="s1"
        )
        intent = call(arguments, new)
        assert (row.key, row.fingerprint) == (intent.key, intent.fingerprint)


@pytest.mark.parametrize("identity", [None, ("to",), ("to", "currency")])
@pytest.mark.parametrize("known", [schema(("to",)), {}])
def test_k2_an_added_parameter_is_no_finding(
    identity: tuple[str, ...] | None, known: dict[str, Any]
) -> None:
    """K2: N adds `currency="EUR"`; rows of before mean it."""
    old = Declaration(tool="pay", identity=identity and ("to",), schema=known)
    new = Declaration(tool="pay", identity=identity, schema=schema(("to",), currency="EUR"))
    row = rekey({"to": "x"}, written_under=old, candidate=new, namespace=DESK, run="r1", step="s1")
    intent = call({"to": "x"}, new)
    assert (row.key, row.fingerprint) == (intent.key, intent.fingerprint)
    assert (row.key == call({"to": "x"}, old).key) is (identity != ("to", "currency"))


def test_k2_arguments_are_completed_by_the_declaration_they_were_written_under() -> None:
    old = Declaration(tool="f", schema=schema(("a",), b=1, c=2))
    new = Declaration(tool="f", schema=schema(("a",), b=7, d=8))
    assert complete({"a": 0, "c": 5}, old, new) == {"a": 0, "b": 1, "c": 5, "d": 8}
    assert complete({"a": 0}, old, None) == {"a": 0, "b": 1, "c": 2}


def test_k3_an_old_row_is_keyed_under_the_candidates_rules() -> None:
    """K3: the pull request sets `vendor_id: slug`; the stored key is another one."""
    old = Declaration(tool="po", identity=("vendor_id",))
    new = Declaration(tool="po", identity=("vendor_id",), fields={"vendor_id": ("slug",)})
    arguments = {"vendor_id": "ACME Corp"}
    row = rekey(arguments, written_under=old, candidate=new, namespace=DESK, run="r1", step="s1")
    assert row.key == call({"vendor_id": "acme-corp"}, new).key
    assert row.key != call(arguments, old).key
    assert row.identity == {"vendor_id": "acme-corp"}


def test_k3_a_row_that_the_candidates_rules_cannot_name_is_refused() -> None:
    new = Declaration(tool="f", identity=("b",))
    with pytest.raises(IdentityRefused):
        rekey(
            {"a": 1},
            written_under=Declaration(tool="f"),
            candidate=new,
            namespace=DESK,
            run="r1",
            step="s1",
        )
