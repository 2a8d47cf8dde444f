"""K2, K3: a version whose schema or key rules changed, held against rows of the one before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backstop.core.declaration import Declaration
from backstop.core.history import Outcome
from tests.comparing import DECLARED, ask, call, compared, found, out, rules
from tests.unit.core.test_matching_rules import ACME


def test_k2_a_new_parameter_with_a_default_is_no_finding() -> None:
    """K2: N adds `currency="EUR"`."""
    newer = {
        "pay": Declaration(
            tool="pay",
            identity=("vendor",),
            schema={"properties": {"currency": {"type": "string", "default": "EUR"}}},
        )
    }
    asked = ask(ACME.but(currency="EUR"), declared=newer)
    assert found(compared([out(ACME)], [asked], rules(candidate=newer))) == ["matched 1"]


@pytest.mark.parametrize("identity", [None, ("to",)])
def test_k2_a_changed_default_is_mutated(identity: tuple[str, ...] | None) -> None:
    """K2: default normal becomes high: MUTATED, also with identity undeclared."""

    def mail(default: str) -> dict[str, Declaration]:
        schema = {"properties": {"prio": {"type": "string", "default": default}}}
        return {"mail": Declaration(tool="mail", identity=identity, schema=schema)}

    to = call("mail", to="x")
    row = out(to, declared=mail("normal"))
    asked = ask(to, declared=mail("high"))
    under = rules(declared=mail("normal"), candidate=mail("high"))
    result = compared([row], [asked], under)
    assert found(result) == ["MUTATED changed"]
    assert result.divergences[0].paths == ("/prio",)


def test_k2_the_old_default_written_out_is_the_same_call() -> None:
    """K2, K3: N changes the default and passes the old one; only the key rule differs."""

    def mail(default: str) -> dict[str, Declaration]:
        schema = {"properties": {"prio": {"type": "string", "default": default}}}
        return {"mail": Declaration(tool="mail", schema=schema)}

    to = call("mail", to="x")
    row = out(to, declared=mail("normal"), guarded=False)
    asked = ask(to.but(prio="normal"), declared=mail("high"))
    under = rules(declared=mail("normal"), candidate=mail("high"))
    assert found(compared([row], [asked], under)) == ["matched 1"]
    guarded = out(to, declared=mail("normal"))
    assert found(compared([guarded], [asked], under)) == ["DUPLICATE rekeyed"]


def test_k3_a_match_that_needs_rekeying_is_a_duplicate_unless_the_guard_looks() -> None:
    """K3: a pull request sets `vendor: slug`; the store's documents keep their old ids."""
    slug = {"pay": Declaration(tool="pay", identity=("vendor",), fields={"vendor": ("slug",)})}
    spaced = call("pay", vendor="Acme Corp")
    row, asked = out(spaced), ask(spaced, declared=slug)
    assert found(compared([row], [asked], rules(candidate=slug))) == ["DUPLICATE rekeyed"]
    looks = rules(candidate=slug, finds_old_keys=frozenset({"pay"}))
    assert found(compared([row], [asked], looks)) == ["matched 1"]
    # No store holds the keys of an imported row.
    imported = out(spaced, guarded=False)
    assert found(compared([imported], [asked], rules(candidate=slug))) == ["matched 1"]


def test_k3_a_key_that_was_barred_stands_for_nothing() -> None:
    """K3: as the guard claims under a new rule it bars the old key: one effect, two rows."""
    slug = {"pay": Declaration(tool="pay", identity=("vendor",), fields={"vendor": ("slug",)})}
    both = {"pay": slug["pay"]}
    spaced = call("pay", vendor="Acme Corp")
    done, barred = out(spaced, declared=slug), out(spaced, outcome=Outcome.FAILED)
    under = rules(declared={**DECLARED, **both}, candidate=slug)
    under = replace(under, recorded={one.digest: one for one in (slug["pay"], DECLARED["pay"])})
    once = ask(spaced, declared=slug, by=0)
    assert found(compared([done, barred], [once], under)) == ["matched 1"]
    assert found(compared([done, barred], [], under)) == ["MISSING dropped"]
