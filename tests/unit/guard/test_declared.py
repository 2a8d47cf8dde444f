"""Configuration and code speak of one tool: each where the other is silent."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from google.adk.tools.function_tool import FunctionTool

from backstop.adk.schema import schema_of
from backstop.core.declaration import Declaration, Scope
from backstop.guard.claims.capability import Happened, Keyed, keyed, probe
from backstop.guard.claims.safety import LEASE_S, NO_SAFETY, Safety
from backstop.guard.declared import Tools, functions_of
from backstop.guard.effect import Declared, declared_by, effect

pytestmark = pytest.mark.filterwarnings("ignore")  # the framework warns about its own features


def asked(key: str, arguments: Mapping[str, Any]) -> Happened:
    return Happened()


def pay(order: str, amount: int = 1, idempotency_key: str = "") -> None:
    """Pays."""


def said(function: Any = pay, **words: Any) -> Declared:
    decorate: Any = effect(**words)
    declared = declared_by(decorate(function))
    assert declared is not None
    return declared


def test_code_speaks_where_the_configuration_is_silent() -> None:
    tools = Tools(
        configured={"pay": Declaration(tool="pay", scope=Scope.AGENT, occurrence="week")},
        found=[said(identity=("order",), key="idempotency_key")],
    )
    declared = tools.declarations()["pay"]
    assert declared.identity == ("order",)
    assert declared.key == ("idempotency_key",)
    assert (declared.scope, declared.occurrence) == (Scope.AGENT, "week")


def test_the_schema_is_the_one_that_a_tool_of_the_same_function_has() -> None:
    declared = Tools(found=[said()]).declarations()["pay"]
    assert declared.schema == schema_of(FunctionTool(pay))
    assert declared.defaults == {"amount": 1, "idempotency_key": ""}
    configured = Declaration(tool="pay", schema={"type": "object"})
    ours = Tools(configured={"pay": configured}, found=[said()]).declarations()["pay"]
    assert ours.schema == {"type": "object"}


def test_a_scope_in_code_is_one_of_the_configurations() -> None:
    assert Tools(found=[said(scope="step")]).declarations()["pay"].scope is Scope.STEP


def test_the_parameter_that_takes_our_key_names_nothing() -> None:
    tools = Tools(found=[said(capability=keyed("idempotency_key", retention="1d"))])
    assert tools.declarations()["pay"].fields == {"idempotency_key": ("volatile",)}
    assert tools.safety()["pay"].capability == Keyed(param="idempotency_key", retention_s=86400)


def test_tools_without_decoration_are_as_configured() -> None:
    order = Declaration(tool="order", identity=("sku",))
    careful = Safety(no_effect_on=(ValueError,))
    tools = Tools(configured={"order": order}, vouched={"order": careful})
    assert tools.declarations() == {"order": order}
    assert dict(tools.safety()) == {"order": careful}
    assert tools.safety_of("mail") == NO_SAFETY
    with pytest.raises(KeyError):
        tools.safety()["mail"]


def test_safety_is_completed_and_a_zero_lease_is_a_value() -> None:
    tools = Tools(
        vouched={"pay": Safety(no_effect_on=(ConnectionRefusedError,))},
        found=[said(lease="0s", capability=probe(asked, settle="30s"))],
    )
    safety = tools.safety()["pay"]
    assert safety.no_effect_on == (ConnectionRefusedError,)
    assert safety.lease_s == 0
    assert safety.capability == probe(asked, settle="30s")
    assert safety.broken == ""
    assert len(tools.safety()) == 1
    assert Tools(found=[said()]).safety_of("pay") == Safety(lease_s=LEASE_S)


@pytest.mark.parametrize(
    ("words", "differing"),
    [
        ({"identity": ("amount",)}, "identity"),
        ({"scope": "step", "key": "amount"}, "scope, key"),
        ({"no_effect_on": (ValueError,)}, "no_effect_on"),
        ({"lease": "1m"}, "lease"),
        ({"capability": probe(asked, settle="1s")}, "capability"),
    ],
)
def test_a_contradiction_is_told_and_the_tool_is_refused(
    words: dict[str, Any], differing: str
) -> None:
    tools = Tools(
        configured={
            "pay": Declaration(tool="pay", identity=("order",), scope=Scope.RUN, key=("order",))
        },
        vouched={
            "pay": Safety(
                no_effect_on=(KeyError,), lease_s=5, capability=keyed("order", retention="1d")
            )
        },
        found=[said(**words)],
    )
    assert (
        f"different things about pay: {differing}; say it in one place"
        in tools.safety_of("pay").broken
    )
    assert tools.declarations()["pay"].identity == ("order",)


def test_what_both_say_alike_is_no_contradiction() -> None:
    tools = Tools(
        configured={"pay": Declaration(tool="pay", identity=("order",))},
        vouched={"pay": Safety(no_effect_on=(KeyError,))},
        found=[said(identity=("order",), no_effect_on=(KeyError,))],
    )
    assert tools.safety_of("pay").broken == ""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"capability": "keyed"}, "neither keyed(...) nor probe(...)"),
        ({"lease": "soon"}, "'soon' is no time span"),
    ],
)
def test_words_of_the_code_that_mean_nothing_break_the_tool(
    words: dict[str, Any], why: str
) -> None:
    assert why in Tools(found=[said(**words)]).safety_of("pay").broken


def test_what_the_configuration_broke_stays_broken() -> None:
    broken = Safety(broken="no such name")
    assert Tools(vouched={"pay": broken}, found=[said()]).safety_of("pay") is broken


def test_k26_two_functions_of_one_name_are_refused_until_one_is_renamed() -> None:
    """K26: the whole identity of a tool is in the key, so no two may share a name."""

    def other() -> Declared:
        def pay(order: str) -> None: ...

        return said(pay)

    assert (
        "several functions are called pay" in Tools(found=[said(), other()]).safety_of("pay").broken
    )
    renamed = said(name="billing.pay")
    tools = Tools(found=[other(), renamed])
    assert sorted(tools.declarations()) == ["billing.pay", "pay"]
    assert tools.safety_of("pay").broken == ""


def test_k26_a_function_that_is_found_later_is_known_from_then_on() -> None:
    """K26: one that takes a name which another has breaks both, whenever it comes."""
    tools = Tools(configured={"pay": Declaration(tool="pay", scope=Scope.AGENT)})
    safety = tools.safety()
    assert "pay" not in safety
    declared = tools.add(said(identity=("order",), lease="1m"))
    assert (declared.identity, declared.scope) == (("order",), Scope.AGENT)
    assert safety["pay"].lease_s == 60

    def other() -> Declared:
        def pay(order: str) -> None: ...

        return said(pay)

    tools.add(other())
    assert "several functions are called pay" in safety["pay"].broken
    assert list(safety) == ["pay"]


def test_functions_of_a_folder_are_those_that_its_modules_hold(tmp_path: Path) -> None:
    inside, outside = ModuleType("inside_the_folder"), ModuleType("outside_the_folder")
    inside.__file__ = str(tmp_path / "agent" / "agent.py")
    outside.__file__ = str(tmp_path / "elsewhere.py")

    def mail(to: str) -> None: ...

    decorated = effect(mail)
    vars(inside).update(mail=decorated, again=decorated, pay=pay)
    vars(outside).update(order=effect(pay))
    sys.modules.update({one.__name__: one for one in (inside, outside)})
    try:
        found = [declared.tool for declared in functions_of(tmp_path / "agent")]
    finally:
        del sys.modules[inside.__name__], sys.modules[outside.__name__]
    assert found == ["mail"]


def test_a_function_that_no_module_names_belongs_to_the_folder_that_it_was_written_in() -> None:
    @effect(name="hidden.mail")
    def mail(to: str) -> None: ...

    assert "hidden.mail" in {declared.tool for declared in functions_of(Path(__file__).parent)}
    assert FunctionTool(mail).name == "hidden.mail"
