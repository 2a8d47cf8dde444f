"""What an ignore file leaves out, in the form of Docker's."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop.adapters.docker.building.context import read_context
from backstop.adapters.docker.building.ignoring import DOCKERS, Ignoring, is_withheld


def out(text: str, path: str) -> bool:
    return Ignoring(text).leaves_out(path.split("/"))


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("docs", "docs", True),
        ("docs", "docs/a/b.md", True),
        ("docs", "a/docs", False),
        ("/docs/", "docs/a", True),
        ("./docs", "docs/a", True),
        ("*.md", "a.md", True),
        ("*.md", "a/a.md", False),
        ("*/*.md", "a/a.md", True),
        ("**/*.md", "a/b/a.md", True),
        ("**/*.md", "a.md", True),
        ("a/**", "a", False),
        ("a/**", "a/b/c", True),
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/x/y/c/d", True),
        ("**", "anything/at/all", True),
        ("?.txt", "a.txt", True),
        ("?.txt", "ab.txt", False),
        ("[a-c].txt", "b.txt", True),
        ("[^a-c].txt", "b.txt", False),
        ("[^a-c].txt", "d.txt", True),
        ("\\*.txt", "*.txt", True),
        ("\\*.txt", "a.txt", False),
        ("[", "[", True),
        ("# a comment", "# a comment", False),
        ("", "a", False),
        ("!", "a", False),
        ("*\n!src", "src/a.py", False),
        ("*\n!src", "lib/a.py", True),
        ("*\n!src\nsrc/*.log", "src/a.log", True),
        ("!src\n*", "src/a.py", True),
        ("*\n!src/agent", "src/other/a.py", True),
        ("*\n!src/agent", "src/agent/a.py", False),
        ("a.txt  ", "a.txt", True),
    ],
)
def test_the_last_rule_that_fits_decides(rules: str, path: str, *, expected: bool) -> None:
    assert out(rules, path) is expected


def test_a_pattern_made_to_take_for_ever_does_not() -> None:
    hostile = "/".join(["**", "*a*a*a*a*a*a*a*a*a*a*b"] * 30)
    assert not out(hostile, "/".join(["a" * 200] * 60))


def test_rules_beyond_the_thousandth_are_not_looked_at() -> None:
    assert not out("x\n" * 1000 + "a\n", "a")
    assert out("x\n" * 999 + "a\n", "a")


def test_a_kept_file_brings_the_folders_above_it(tmp_path: Path) -> None:
    (tmp_path / "src" / "agent").mkdir(parents=True)
    (tmp_path / "src" / "agent" / "agent.py").write_text("")
    (tmp_path / "src" / "other.py").write_text("")
    (tmp_path / ".backstopignore").write_text("*\n!src/agent\n")
    with read_context(tmp_path) as context:
        assert context.entries == {"src", "src/agent", "src/agent/agent.py"}


def test_dockers_ignore_file_counts_only_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("a\n")
    (tmp_path / ".backstopignore").write_text("b\n")
    (tmp_path / "a").write_text("")
    (tmp_path / "b").write_text("")
    with read_context(tmp_path) as ours:
        assert ours.entries == {".backstopignore", ".dockerignore", "a"}
    with read_context(tmp_path, ignore_file=DOCKERS) as theirs:
        assert theirs.entries == {".backstopignore", ".dockerignore", "b"}


def test_an_ignore_file_cannot_have_a_secret_back(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("s3cret")
    (tmp_path / ".backstopignore").write_text("!.env\n!**\n")
    with read_context(tmp_path) as context:
        assert ".env" not in context.entries


def test_d1_the_base_says_what_stays_out_and_a_change_hides_nothing(tmp_path: Path) -> None:
    """D1: what a change leaves out of its image would run in production, and in no replay."""
    for side, said in (("base", "big\n"), ("head", "plugin.py\n")):
        (tmp_path / side / "big").mkdir(parents=True)
        (tmp_path / side / "big" / "model.bin").write_text("x")
        (tmp_path / side / "plugin.py").write_text("x = 1\n")
        (tmp_path / side / ".backstopignore").write_text(said)
    with read_context(tmp_path / "head", ruling=tmp_path / "base") as context:
        assert "plugin.py" in context.entries
        assert "big/model.bin" not in context.entries
    with read_context(tmp_path / "head") as alone:  # the control
        assert "plugin.py" not in alone.entries


def test_an_ignore_file_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("a\n")
    (tmp_path / ".backstopignore").symlink_to("rules")
    (tmp_path / "a").write_text("")
    with read_context(tmp_path) as context:
        assert "a" in context.entries


@pytest.mark.parametrize(
    "name", ["agent.py", "environment.py", "keys.py", "key", "config", "env", "requirements.txt"]
)
def test_ordinary_names_are_no_secrets(name: str) -> None:
    assert not is_withheld(name)
