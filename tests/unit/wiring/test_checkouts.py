"""What a change concerns, read from two checkouts that somebody may have laid traps in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from backstop.gate.request import ReplayRequest
from backstop.wiring.checkouts import changes, tops

CONFIG = """
version: 1
agents:
  a: {path: agents/a, ledger: ledgers/a.jsonl, tools: {pay: {identity: [vendor]}}}
  b: {path: agents/b, ledger: 'firestore://p/(default)/b'}
"""
CONCERNS_ALL = {"a", "b"}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A checkout with two agents."""
    folder = tmp_path / "base"
    for path in ("agents/a/agent.py", "agents/b/agent.py", "ledgers/a.jsonl", "lib/tax.py"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x = 1\n", encoding="utf-8")
    (folder / "backstop.yaml").write_text(CONFIG, encoding="utf-8")
    return folder


@pytest.fixture
def head(base: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(base, tmp_path / "head"))


def concerned(head: Path, base: Path, **how: Any) -> set[str]:
    """The agents that the change concerns."""
    found = asked(head, base, **how)
    assert isinstance(found, dict), found
    return set(found)


def asked(
    head: Path, base: Path | None, *, cache: Path | None = None, **how: Any
) -> dict[str, str] | str:
    config = how.pop("config", head / "backstop.yaml")
    request = ReplayRequest(config=config, **{"base": base, "base_is_checkout": True, **how})
    return changes(request, cache)


def test_g20_a_change_of_nothing_concerns_nobody(head: Path, base: Path) -> None:
    """G20: wherever the two lie, and whatever a runner left in the head."""
    (head / ".git").mkdir()
    (head / ".git/config").write_text("token", encoding="utf-8")
    (head / "gha-creds-0a1b.json").write_text("{}", encoding="utf-8")
    (head / "cache").mkdir()
    (head / "cache/x").write_text("x", encoding="utf-8")
    assert concerned(head, base, cache=head / "cache") == set()
    assert concerned(head, base) == CONCERNS_ALL  # the control: a folder that nobody named


def test_g09_a_change_of_one_agent_leaves_the_other_alone(head: Path, base: Path) -> None:
    """G09."""
    (head / "agents/a/agent.py").write_text("x = 2\n", encoding="utf-8")
    assert concerned(head, base) == {"a"}


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("from agents.b.agent import x\n", "agents/b/agent.py"),
        ("open('docs/policy.md')\n", "docs/policy.md"),
    ],
)
def test_g09_a_change_concerns_those_who_use_it(
    code: str, changed: str, head: Path, base: Path
) -> None:
    """G09: another's folder, and documentation, are an agent's own where its code points there."""
    for side in (head, base):
        (side / "docs").mkdir()
        (side / "docs/policy.md").write_text("Be kind.\n", encoding="utf-8")
    (head / changed).write_text("x = 2\n", encoding="utf-8")
    assert "a" not in concerned(head, base)
    for side in (head, base):
        (side / "agents/a/agent.py").write_text(code, encoding="utf-8")
    assert "a" in concerned(head, base)


def test_g09_a_link_into_another_agents_folder_is_a_use_of_it(head: Path, base: Path) -> None:
    """G09."""
    for side in (head, base):
        (side / "agents/a/common.py").symlink_to("../b/agent.py")
    (head / "agents/b/agent.py").write_text("x = 2\n", encoding="utf-8")
    assert concerned(head, base) == CONCERNS_ALL


@pytest.mark.parametrize(
    ("old", "new", "who"),
    [
        ("[vendor]", "[vendor, ref]", {"a"}),
        ("ledgers/a.jsonl", "ledgers/c.jsonl", {"a"}),
        ("(default)", "other", {"b"}),
        ("agents/b", "agents/a", {"b"}),
        ("agents/b", "../elsewhere", {"b"}),
        ("agents/b", "/agents/b", {"b"}),
        ("agents:", "gate: {control: none}\nagents:", CONCERNS_ALL),
        ("agents:", "sandbox: {memory: 2g}\nagents:", CONCERNS_ALL),
        ("agents:", "# only a word\nagents:", set()),
    ],
)
def test_what_the_configuration_says_is_compared_and_not_its_words(
    old: str, new: str, who: set[str], head: Path, base: Path
) -> None:
    (head / "backstop.yaml").write_text(CONFIG.replace(old, new), encoding="utf-8")
    assert concerned(head, base) == who


def test_an_agent_outside_of_its_checkout_is_always_concerned(head: Path, base: Path) -> None:
    for side in (head, base):
        text = CONFIG.replace("agents/a", "../a").replace("agents/b", "/somewhere/b")
        (side / "backstop.yaml").write_text(text, encoding="utf-8")
    assert concerned(head, base) == CONCERNS_ALL


def test_an_agent_behind_a_link_is_always_concerned(head: Path, base: Path) -> None:
    """The files that are compared are not those that would run."""
    for side in (head, base):
        (side / "agents/a").rename(side / "agents/real")
        (side / "agents/a").symlink_to("real")
    assert "a" in concerned(head, base)


@pytest.mark.parametrize(
    "trap",
    [
        "lib/pyvenv.cfg",
        "lib/__pycache__/tax.cpython-312.pyc",
        "agents/.hidden",
        "node_modules/x.js",
        "gha-creds-1/prompt.json",
        "lib/.svn/tax.py",
    ],
)
def test_no_file_gets_past_by_where_it_lies(trap: str, head: Path, base: Path) -> None:
    (head / trap).parent.mkdir(parents=True, exist_ok=True)
    (head / trap).write_text("x", encoding="utf-8")
    assert concerned(head, base) == CONCERNS_ALL


def test_a_link_that_leads_elsewhere_is_a_change_and_is_not_followed(
    head: Path, base: Path
) -> None:
    for side, target in ((base, "one"), (head, "/dev/zero")):
        (side / "lib/link").symlink_to(target)
    assert concerned(head, base) == CONCERNS_ALL


def test_a_pipe_in_a_checkout_is_not_waited_for(head: Path, base: Path) -> None:
    os.mkfifo(head / "lib/pipe")
    assert concerned(head, base) == CONCERNS_ALL


def test_a_configuration_below_the_top_is_compared_from_the_top(head: Path, base: Path) -> None:
    """What several share lies above it."""
    for side in (head, base):
        (side / "gate").mkdir()
        text = CONFIG.replace("agents/", "../agents/").replace("ledgers/", "../ledgers/")
        (side / "gate/backstop.yaml").write_text(text, encoding="utf-8")
        (side / "backstop.yaml").unlink()
    (head / ".git").mkdir()
    config = head / "gate/backstop.yaml"
    assert concerned(head, base / "gate", config=config) == set()
    (head / "lib/tax.py").write_text("x = 2\n", encoding="utf-8")
    assert concerned(head, base / "gate", config=config) == CONCERNS_ALL
    found = tops(
        ReplayRequest(config=config, base=base / "gate", top=head.parent, base_top=base.parent)
    )
    assert found == (head.parent, base.parent)


def test_where_nobody_can_tell_every_agent_is_to_be_judged(head: Path, base: Path) -> None:
    assert asked(head, None, base_is_checkout=False) == "no base is named"
    assert "no checkout of its own" in asked(head, head)
    (base / "backstop.yaml").unlink()
    assert "no checkout of its own" in asked(head, base)
    assert "nobody knows where" in asked(head, base, base_is_checkout=False)
    (base / "backstop.yaml").write_text(CONFIG, encoding="utf-8")
    deep = head / "/".join(["d"] * 70)
    deep.mkdir(parents=True)
    assert "too much to be compared" in asked(head, base)
