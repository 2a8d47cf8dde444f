"""Variables that an agent's import needs, from the configuration to the candidate's process."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop.adapters.bounds import Limits, harness_options
from backstop.adapters.process import ProcessSandbox
from backstop.config import loads
from backstop.errors import ConfigError
from backstop.gate.request import SandboxKind
from backstop.replay.harness.main import options
from backstop.wiring.sandboxes import Choice, sandbox

HEAD = "version: 1\nagents: {a: {}}\n"


def given(text: str) -> dict[str, str]:
    return dict(loads(HEAD + text, name="backstop.yaml", root=Path()).sandbox.env)


def test_variables_are_texts_by_name() -> None:
    assert given("sandbox: {env: {CRM_URL: 'http://x', EMPTY: ''}}") == {
        "CRM_URL": "http://x",
        "EMPTY": "",
    }
    assert given("") == {}


@pytest.mark.parametrize(
    "name", ["PYTHONPATH", "LD_PRELOAD", "PATH", "HOME", "BACKSTOP_STORE", "A-B", "1A", "A=B", ""]
)
def test_what_the_sandbox_sets_itself_and_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"backstop\.yaml:3"):
        given(f"sandbox: {{env: {{'{name}': x}}}}")


@pytest.mark.parametrize("value", ["1", "true", "null"])
def test_a_value_that_is_no_text_is_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        given(f"sandbox: {{env: {{A: {value}}}}}")


def test_they_come_to_the_harness_as_they_are() -> None:
    limits = Limits(variables={"A": "x=1 2", "B": ""})
    told = harness_options(limits, agent="a", start="p", scratch="s")
    assert options(told).variables == {"A": "x=1 2", "B": ""}
    assert options(harness_options(Limits(), agent="a", start="p", scratch="s")).variables == {}


def test_a_candidates_own_variables_stand_beside_the_ruling_ones_which_go_first() -> None:
    ruling = loads(f"{HEAD}sandbox: {{env: {{A: base}}}}", name="b", root=Path())
    made = sandbox(Choice(kind=SandboxKind.PROCESS), ruling, env={"A": "head", "B": "head"})
    assert isinstance(made, ProcessSandbox)
    assert made.limits.variables == {"A": "base", "B": "head"}
