"""What a report knows of the step that it is about."""

from __future__ import annotations

import re
from itertools import product
from pathlib import PurePosixPath

import pytest

from backstop.action.context import config_id

NAMES = [
    "a/b.yaml",
    "a-b.yaml",
    "a.b.yaml",
    "a/b-yaml",
    "a b.yaml",
    "a..b.yaml",
    "x" * 80,
    "é.yaml",
]
AGENTS = [None, "yaml", "b-yaml", "b.yaml"]


def test_g13_two_gates_never_share_a_comment() -> None:
    """G13: one's pass would stand where the other's block was."""
    gates = [*product(NAMES, AGENTS), ("a", "b.yaml"), ("a.b", "yaml"), ("a.b.yaml", None)]
    found = {config_id(PurePosixPath(config), agent) for config, agent in gates}
    assert len(found) == len({(str(PurePosixPath(config)), agent) for config, agent in gates})


@pytest.mark.parametrize("config", NAMES)
def test_g13_the_name_of_a_gate_is_one_word_of_some_length(config: str) -> None:
    """G13: it stands in a marker, and is found again by the next run."""
    name = config_id(PurePosixPath(config), None)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)
    assert name == config_id(PurePosixPath(config), None)


def test_the_usual_configuration_has_a_plain_name() -> None:
    assert config_id(PurePosixPath("backstop.yaml"), None) == "backstop-yaml"
