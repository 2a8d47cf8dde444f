"""Whose files an agent's code points to: in doubt, more than it reads."""

from __future__ import annotations

import pytest

from backstop.gate.reach import pointed_to, reached

OTHERS = ("agents/billing", "agents/clerk")
PROSE = ("README.md", "docs/policy.md")
SHARED = {"lib/__init__.py": "", "lib/tax.py": "RATE = 7\n"}


def found(text: str, **more: str) -> frozenset[str]:
    """What the agent in agents/desk reaches, with `text` for its code."""
    files = {
        "agents/desk/agent.py": text,
        "agents/billing/agent.py": "x = 1\n",
        "agents/clerk/agent.py": "x = 1\n",
        **SHARED,
        **dict.fromkeys(PROSE, "words\n"),
        **{path.replace("__", "/") + ".py": said for path, said in more.items()},
    }
    return reached("agents/desk", files=files, others=OTHERS, prose=PROSE, read=files.__getitem__)


@pytest.mark.parametrize(
    "text",
    [
        "from agents.billing.tools import pay",
        "from agents.billing import pay",
        "from ..billing import pay",
        "from ..billing.agent import root_agent",
        "from agents import clerk_of, billing",
        "from agents import (\n    one,\n    billing,\n)",
        "import agents.billing",
        "import billing",
        "importlib.import_module('agents.billing')",
        "sub_agents:\n  - config_path: ../billing/root_agent.yaml\n",
        "open(HERE.parent / 'billing' / 'prompt.txt')",
        "../billing/common.py",  # where a link leads
    ],
)
def test_g09_an_agent_that_uses_another_reaches_its_folder(text: str) -> None:
    """G09: what it takes from there is its own code as well."""
    assert found(text) == {"agents/billing"}


@pytest.mark.parametrize(
    "text", ["x = 1\n", 'name="billing"\n', "# hand over to billing\n", "from lib import tax\n"]
)
def test_g09_a_mere_mention_is_no_use(text: str) -> None:
    """G09: the control."""
    assert found(text) == frozenset()


def test_another_is_reached_through_shared_code_and_through_a_third() -> None:
    assert found("from lib import tax", lib__tax="from agents import clerk") == {"agents/clerk"}
    through = found("from agents import billing", agents__billing__x="import agents.clerk")
    assert through == {"agents/billing", "agents/clerk"}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("(TOP / 'docs' / 'policy.md').read_text()", {"docs/policy.md"}),
        ("open('docs/' + name)", {"docs/policy.md"}),
        ("for text in (TOP / 'docs').iterdir(): pass", {"docs/policy.md"}),
        ("load('policy.md')", {"docs/policy.md"}),
        ("open('README.md')", {"README.md"}),
    ],
)
def test_documentation_that_is_read_is_a_prompt(text: str, read: set[str]) -> None:
    assert found(text) == read


def test_words_count_where_a_path_or_a_module_is_named() -> None:
    assert pointed_to("say(a, 'b') # c") == frozenset()
    assert pointed_to("import a as b, c\nd.e / 'f'") == {
        "a",
        "as",
        "b",
        "c",
        "d",
        "e",
        "f",
        "import",
    }


@pytest.mark.parametrize("unit", ["x", "import (", "a.", "/ ", "from a import ", "\n\t", "/'"])
def test_no_text_takes_for_ever(unit: str) -> None:
    """A pull request wrote it. Where the time grew with the square, this would not end."""
    pointed_to(unit * (1_000_000 // len(unit)))
