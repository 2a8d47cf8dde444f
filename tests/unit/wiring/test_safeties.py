"""Names of the configuration become functions and classes when a tool is first asked for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from backstop import config
from backstop.guard.claims.capability import Keyed, Probe, Unknown
from backstop.guard.claims.safety import LEASE_S, Safety
from backstop.wiring.safeties import vouched_for


def was_paid(key: str, arguments: Mapping[str, Any]) -> Unknown:
    return Unknown()


class Declined(Exception):
    pass


@pytest.fixture
def bank() -> ModuleType:
    bank = ModuleType("bank_of_the_test")
    vars(bank).update(Declined=Declined, was_paid=was_paid, NAME="bank")
    return bank


def vouched(said: str) -> Safety:
    text = f"version: 1\nagents:\n  a: {{tools: {{pay: {{{said}}}}}}}\n"
    agent = config.loads(text, name="backstop.yaml", root=Path("/project")).agent(None)
    safeties = vouched_for(agent)
    assert list(safeties) == ["pay"]
    assert len(safeties) == 1
    assert "mail" not in safeties
    assert safeties["pay"] is safeties["pay"]
    return safeties["pay"]


def test_nothing_said_is_the_default() -> None:
    assert vouched("") == Safety(lease_s=LEASE_S)


def test_builtins_and_dotted_names_are_found(bank: ModuleType) -> None:
    sys.modules[bank.__name__] = bank
    try:
        pay = vouched(
            "no_effect_on: [ConnectionRefusedError, 'bank_of_the_test:Declined'], lease: 1m, "
            "probe: {function: 'bank_of_the_test:was_paid', settle: 30s}"
        )
    finally:
        del sys.modules[bank.__name__]
    assert pay.no_effect_on == (ConnectionRefusedError, Declined)
    assert pay.capability == Probe(ask=was_paid, settle_s=30)
    assert pay.lease_s == 60


def test_s03_a_lease_of_zero_is_a_value() -> None:
    """S03: zero is no "unknown"."""
    assert vouched("lease: 0s").lease_s == 0


def test_a_keyed_tool_says_which_parameter_takes_the_key() -> None:
    pay = vouched("keyed: {param: idempotency_key, retention: 1d}")
    assert pay.capability == Keyed(param="idempotency_key", retention_s=86400)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("no_effect_on: ['bank_that_is_not:Declined']", "cannot be imported: ModuleNotFoundError"),
        ("no_effect_on: [NoSuchError]", "is no exception class"),
        ("no_effect_on: [print]", "is no exception class"),
        ("no_effect_on: [KeyboardInterrupt]", "is no exception class"),
        ("probe: {function: 'backstop:no_such', settle: 1s}", "cannot be imported: AttributeError"),
        ("probe: {function: 'backstop:__version__', settle: 1s}", "cannot be called"),
    ],
)
def test_a_name_that_leads_nowhere_is_told_and_breaks_that_tool_only(said: str, why: str) -> None:
    pay = vouched(said)
    assert why in pay.broken
    assert "config-name" in pay.broken
    assert pay.no_effect_on == ()
    assert pay.capability is None
