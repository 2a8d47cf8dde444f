"""Identity: which arguments are in the key, which in the fingerprint, and what is refused."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

import pytest

from backstop.core.canon import NotCanonical
from backstop.core.declaration import Declaration, Namespace, Scope
from backstop.core.identity import (
    Identified,
    IdentityRefused,
    complete,
    identify,
    identify_read,
    rekey,
    suggest,
)
from backstop.errors import IdentityError

DESK = Namespace(agent="desk")


def schema(required: tuple[str, ...] = (), **defaults: Any) -> dict[str, Any]:
    """Parameters of any type; `required` have no default."""
    properties: dict[str, Any] = {name: {} for name in required}
    properties |= {name: {"default": value} for name, value in defaults.items()}
    return {"type": "object", "properties": properties, "required": list(required)}


def call(
    arguments: Mapping[str, object],
    declaration: Declaration | None = None,
    *,
    namespace: Namespace = DESK,
    run: str = "r1",
    step: str = "s1",
    **more: Any,
) -> Identified:
    declaration = declaration or Declaration(tool="f")
    return identify(arguments, declaration, namespace=namespace, run=run, step=step, **more)


def refused(arguments: Mapping[str, object], declaration: Declaration, **more: Any) -> str:
    with pytest.raises(IdentityRefused) as error:
        call(arguments, declaration, **more)
    assert isinstance(error.value, IdentityError)
    assert "\n" not in str(error.value)
    return error.value.slug


def test_k1_the_key_and_the_fingerprint_are_digests() -> None:
    found = call({"a": 1})
    for text in (found.key, found.fingerprint):
        assert len(text) == 64
        assert set(text) <= set(string.hexdigits.lower())


def test_k1_a_key_is_the_same_tomorrow() -> None:
    """K1: the derivation is part of CANON_VERSION; whoever changes it changes the version."""
    found = call({"b": [1.0, "e\u0301"], "a": None}, Declaration(tool="f", scope=Scope.AGENT))
    assert found.key == "602a90637ea5028530c25bea79b991c3e4022fad79ced74cd21be6010395d337"
    assert found.fingerprint == "f8f17faab95c024891d173fa43442b0e52007736a1f36715ac721ab22deeefc5"


@pytest.mark.parametrize(
    "other",
    [
        {"namespace": Namespace(agent="other")},
        {"namespace": Namespace(agent="desk", app="a")},
        {"namespace": Namespace(agent="desk", tenant="a")},
        {"run": "r2"},
        {"occurrence": 1},
        {"occurrence": "2026-W01"},
    ],
)
def test_k1_everything_that_names_an_effect_is_in_the_key(other: dict[str, Any]) -> None:
    """K1, K26: agent, app, tenant, run and occurrence; the tool and arguments stand below."""
    assert call({"a": 1}).key != call({"a": 1}, **other).key
    assert call({"a": 1}).fingerprint == call({"a": 1}, **other).fingerprint


def test_k1_an_app_is_not_a_tenant() -> None:
    app, tenant = Namespace(agent="d", app="x"), Namespace(agent="d", tenant="x")
    assert call({"a": 1}, namespace=app).key != call({"a": 1}, namespace=tenant).key


def test_k1_the_schema_is_not_in_the_key() -> None:
    plain = Declaration(tool="f", identity=("a",))
    described = Declaration(
        tool="f", identity=("a",), schema={"properties": {"a": {"type": "integer"}}}
    )
    assert call({"a": 1}, plain).key == call({"a": 1}, described).key
    assert plain.digest != described.digest


@pytest.mark.parametrize(
    ("scope", "same_run", "same_agent"),
    [(None, True, False), (Scope.RUN, True, False), (Scope.STEP, False, False),
     (Scope.AGENT, True, True)],
)  # fmt: skip
def test_a_key_is_unique_within_its_scope(
    scope: Scope | None, same_run: bool, same_agent: bool
) -> None:
    rules = Declaration(tool="f", scope=scope)
    key = call({"a": 1}, rules).key
    assert (key == call({"a": 1}, rules, step="s2").key) is same_run
    assert (key == call({"a": 1}, rules, run="r2").key) is same_agent
    assert key == call({"a": 1}, rules).key


def test_an_undeclared_scope_is_the_run() -> None:
    assert call({"a": 1}).key == call({"a": 1}, Declaration(tool="f", scope=Scope.RUN)).key


def test_declared_identity_alone_is_in_the_key() -> None:
    """F26: free text is no identity; the fingerprint tells, so that it is MUTATED."""
    rules = Declaration(tool="transfer", identity=("to", "amt"))
    lunch = call({"to": "x", "amt": 5, "reason": "for lunch"}, rules)
    payment = call({"to": "x", "amt": 5.0, "reason": "lunch payment"}, rules)
    assert lunch.key == payment.key
    assert lunch.fingerprint != payment.fingerprint
    assert lunch.identity == {"to": "x", "amt": 5}


def test_the_order_of_the_declared_names_does_not_matter() -> None:
    one = Declaration(tool="f", identity=("a", "b"))
    two = Declaration(tool="f", identity=("b", "a"))
    assert call({"a": 1, "b": 2}, one).key == call({"b": 2, "a": 1}, two).key


@pytest.mark.parametrize(
    ("arguments", "rules"),
    [
        ({}, Declaration(tool="f")),
        ({"a": None}, Declaration(tool="f")),
        ({}, Declaration(tool="f", schema=schema(a=None))),
        ({"at": 1}, Declaration(tool="f", fields={"at": ("volatile",)})),
        ({"yes": True}, Declaration(tool="f", fields={"yes": ("override",)})),
        ({"text": "x"}, Declaration(tool="f", fields={"text": ("generated",)})),
        ({"a": 1}, Declaration(tool="f", identity=())),
        ({"b": 1}, Declaration(tool="f", identity=("a",))),
        ({"b": 1}, Declaration(tool="f", identity=("a",), schema=schema(("a", "b")))),
        ({"a": None}, Declaration(tool="f", identity=("a",))),
        ({"b": 1}, Declaration(tool="f", identity=("a",), schema=schema(("b",), a=None))),
        ({"a": None, "b": None}, Declaration(tool="f", identity=("a", "b"), scope=Scope.RUN)),
        ({"at": 1}, Declaration(tool="f", identity=("at",), fields={"at": ("volatile",)})),
    ],
)
def test_what_names_no_target_is_refused(arguments: dict[str, object], rules: Declaration) -> None:
    """K04, K05: missing or all null is no identity; it is never hashed as null."""
    assert refused(arguments, rules) == "no-identity"


@pytest.mark.parametrize(
    ("arguments", "rules", "identity"),
    [
        ({}, Declaration(tool="f", scope=Scope.STEP), {}),
        ({"a": 1}, Declaration(tool="f", identity=(), scope=Scope.RUN), {}),
        ({}, Declaration(tool="f", schema=schema(a="x")), {}),
        ({}, Declaration(tool="f", identity=("a",), schema=schema(a="x")), {"a": "x"}),
        ({"b": 1}, Declaration(tool="f", identity=("a", "b"), schema={"properties": {"a": {}}}),
         {"a": None, "b": 1}),
        ({"a": 0}, Declaration(tool="f", identity=("a",)), {"a": 0}),
        ({"a": ""}, Declaration(tool="f", identity=("a",)), {"a": ""}),
        ({"text": "x"}, Declaration(
            tool="f", identity=("text",), fields={"text": ("generated",)}
        ), {"text": "x"}),
    ],
)  # fmt: skip
def test_what_names_a_target_has_a_key(
    arguments: dict[str, object], rules: Declaration, identity: dict[str, object]
) -> None:
    assert call(arguments, rules).identity == identity


def test_an_occurrence_is_zero_unless_declared() -> None:
    assert call({"a": 1}).occurrence == 0
    assert call({"a": 1}).key == call({"a": 1}, occurrence=0).key


@pytest.mark.parametrize(
    ("arguments", "occurrence"),
    [({"a": 1, "week": "W1"}, "W1"), ({"a": 1, "week": None}, 0), ({"a": 1}, 0)],
)
def test_an_occurrence_may_be_an_argument(arguments: dict[str, Any], occurrence: object) -> None:
    """F28: January's and March's subscription differ by what the caller says, never by a clock."""
    rules = Declaration(tool="sub", identity=("a",), occurrence="week")
    assert call(arguments, rules).occurrence == occurrence
    assert call({"a": 1, "week": "W1"}, rules).key != call({"a": 1, "week": "W2"}, rules).key


def test_an_occurrence_may_be_the_step() -> None:
    rules = Declaration(tool="remind", identity=("a",), occurrence="step")
    assert call({"a": 1}, rules, step="s1").key != call({"a": 1}, rules, step="s2").key
    assert call({"a": 1}, rules, step="s1").occurrence == "s1"


def test_an_override_is_recorded_and_changes_nothing_else() -> None:
    """F33: `confirm_duplicate` marks the repeat as deliberate; the key is the same."""
    rules = Declaration(
        tool="pay",
        fields={"confirm": ("override",), "reason": ("override", "trim")},
        schema=schema(("a",), confirm=False),
    )
    plain = call({"a": 5}, rules)
    again = call({"a": 5, "confirm": True, "reason": " asked twice "}, rules)
    assert (plain.key, plain.fingerprint) == (again.key, again.fingerprint)
    assert plain.override is None
    assert again.override == {"confirm": True, "reason": " asked twice "}
    assert again.arguments == {"a": 5}
    assert call({"a": 5, "confirm": False, "reason": None}, rules).override is None


def test_a_volatile_field_is_in_neither_key_nor_fingerprint() -> None:
    """F27: a token that each retry mints anew."""
    rules = Declaration(tool="charge", fields={"token": ("volatile",)})
    one, two = call({"order": 9, "token": "t1"}, rules), call({"order": 9, "token": "t2"}, rules)
    assert one == two
    assert one.arguments == {"order": 9}


def test_a_generated_field_is_recorded_but_compared_nowhere() -> None:
    rules = Declaration(tool="mail", fields={"body": ("generated",)})
    one, two = call({"to": "x", "body": "Hi"}, rules), call({"to": "x", "body": "Hello"}, rules)
    assert (one.key, one.fingerprint) == (two.key, two.fingerprint)
    assert (one.arguments["body"], two.arguments["body"]) == ("Hi", "Hello")


def test_the_schema_is_applied_before_the_kinds() -> None:
    rules = Declaration(
        tool="f",
        fields={"ids": ("set",)},
        schema={"properties": {"ids": {"type": "array", "items": {"type": "integer"}}}},
    )
    assert call({"ids": '["2", 1]'}, rules) == call({"ids": [1, 2]}, rules)


def test_k18_two_explicit_keys_that_conflict_are_refused() -> None:
    assert refused({"a": 1}, Declaration(tool="f"), explicit=("A", "B")) == "conflicting-keys"
    assert refused({"a": 1}, Declaration(tool="f"), explicit=(" ",)) == "no-identity"


def test_k18_a_declared_argument_holds_the_callers_own_key_and_two_must_agree() -> None:
    """K18: the key may stand in two places of one call; they must not disagree."""
    rules = Declaration(tool="f", key=("header", "meta"))
    one = call({"a": 1, "header": "A"}, rules)
    assert one.key == call({"a": 2, "meta": "A", "header": "A"}, rules).key
    assert one.key == call({"a": 1}, explicit=("A",)).key
    assert (
        one.key
        == rekey(
            {"a": 3, "meta": "A"},
            written_under=rules,
            candidate=rules,
            namespace=DESK,
            run="r1",
            step="s1",
        ).key
    )
    assert call({"header": 42}, rules).key == call({"header": "42"}, rules).key
    assert refused({"header": "A", "meta": "B"}, rules) == "conflicting-keys"
    assert refused({"header": "A"}, rules, explicit=("B",)) == "conflicting-keys"


def test_without_the_callers_key_the_identity_decides_and_without_one_the_call_is_refused() -> None:
    by_name = Declaration(tool="f", key=("request",), identity=("a",))
    assert call({"a": 1}, by_name).key == call({"a": 1}, Declaration(tool="f", identity=("a",))).key
    assert refused({"a": 1}, Declaration(tool="f", key=("request",))) == "no-identity"


def test_k18_one_explicit_key_stands_in_for_the_identity() -> None:
    one = call({"a": 1}, explicit=("A", "A"))
    assert one.key == call({"a": 2}, explicit=("A",)).key
    assert one.key != call({"a": 1}, explicit=("B",)).key
    assert one.identity == {"$key": "A"}
    assert one.key != call({"$key": "A"}).key
    assert call({}, explicit=("A",)).key == one.key


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({1: "x"}, "non-text-name"),
        ({"a": {1: "x"}}, "at /a"),
        ({"a": object()}, "opaque-value"),
        ({"a": float("nan")}, "not-finite"),
        ([1], "not an object"),
        ({"\u00e9": 1, "e\u0301": 2}, "duplicate-member"),
    ],
)
def test_arguments_without_a_canonical_form_are_refused(arguments: Any, why: str) -> None:
    """K19: an int name is refused with the reason, never a TypeError."""
    with pytest.raises(IdentityRefused, match=why) as error:
        call(arguments)
    assert error.value.slug == "not-canonical"


def test_a_default_without_a_canonical_form_is_refused() -> None:
    rules = Declaration(tool="f", schema=schema(b=float("inf")))
    with pytest.raises(IdentityRefused, match="not-finite"):
        call({"a": 1}, rules)
    with pytest.raises(NotCanonical):
        complete({"a": 1}, rules, None)


@pytest.mark.parametrize(
    ("arguments", "rules"),
    [
        ({}, Declaration(tool="look")),
        ({"a": None}, Declaration(tool="look", identity=("a",))),
        ({"b": 1}, Declaration(tool="look", identity=("a",))),
    ],
)
def test_a_read_always_has_a_key(arguments: dict[str, Any], rules: Declaration) -> None:
    read = identify_read(arguments, rules, namespace=DESK, run="r1", step="s1")
    assert read.identity == arguments


def test_a_read_is_keyed_by_all_its_arguments() -> None:
    rules = Declaration(tool="look", identity=("a",), effect=False)
    keys = {
        identify_read({"a": 1, "page": page}, rules, namespace=DESK, run="r", step="s").key
        for page in (1, 2)
    }
    assert len(keys) == 2


def test_what_is_changed_after_the_key_was_made_does_not_reach_it() -> None:
    """F32, K06: the identified arguments are a copy."""
    arguments = {"cust": {"id": 1}}
    found = call(arguments)
    arguments["cust"]["id"] = 2
    arguments.clear()
    assert found.arguments == {"cust": {"id": 1}}


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        ("acme-corp", "ACME Corp", "slug"),
        ("Ann", "ann", "casefold"),
        ("a ", "a", "trim"),
        (" Ann@x", "ann@X", "email"),
        ("2026-01-01T12:00:00Z", "2026-01-01T12:00:00.0Z", "date-time"),
        (["a", "b"], ["b", "a"], "set"),
        ('{"a":1}', '{"a": 1}', "json"),
        ("4.20", "4.2", "money"),
        ("acme", "acne", None),
        ("a", "a", None),
        ({"v": "acme-corp", "n": 1}, {"v": "ACME Corp", "n": 1.0}, "slug"),
        ({"v": "a", "w": "b "}, {"v": "A", "w": "b"}, "email"),
        ({"v": "a"}, {"w": "a"}, None),
        ({"v": "a"}, ["a"], None),
    ],
)
def test_the_weakest_kind_that_makes_two_identities_equal_is_suggested(
    a: Any, b: Any, kind: str | None
) -> None:
    assert suggest(a, b) == kind
    assert suggest(b, a) == kind
