"""docs/adopt.md: every command of it is run, in order, and says what the page says it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.adopt.shop import lay_shop
from tests.e2e.command import ROOT

PAGE = (ROOT / "docs" / "adopt.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(console|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OMITTED = "…"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the page, and what it prints there; `…` for any lines."""

    line: str
    printed: tuple[str, ...]


def blocks() -> Iterator[str | list[Command]]:
    """The page's patches, and the commands of its sessions."""
    for kind, body in BLOCK.findall(PAGE):
        if kind == "diff":
            yield body
            continue
        _, *told = re.split(r"^\$ ", body, flags=re.MULTILINE)
        lines = [one.splitlines() for one in told]
        yield [Command(first, tuple(rest)) for first, *rest in lines]


def run(command: str, folder: Path, *, given: str = "") -> list[str]:
    """What a shell prints in 80 columns; the exit code at its end, unless it is 0."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    who = {
        f"GIT_{role}_{of}": "ada@example.org"
        for role in ("AUTHOR", "COMMITTER")
        for of in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        input=given,
        env={**os.environ, **who, "PATH": path, "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    said = re.sub(r"sha256:[0-9a-f]{64}", "sha256:…", done.stdout).splitlines()
    return [*said, f"[exit {done.returncode}]"] if done.returncode else said


def is_as_told(said: list[str], told: tuple[str, ...]) -> bool:
    """Line by line, where `…` alone on a line stands for any lines."""
    pattern = "".join("(?:.*\n)*" if line == OMITTED else re.escape(line) + "\n" for line in told)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in said)) is not None


def test_every_command_of_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    lay_shop(shop)
    ran = 0
    for block in blocks():
        if isinstance(block, str):
            assert run("git apply", shop, given=block) == []
            continue
        for command in block:
            said = run(command.line, shop)
            assert is_as_told(said, command.printed), f"$ {command.line}\n" + "\n".join(said)
            ran += 1
    assert ran == PAGE.count("\n$ ")


@pytest.mark.parametrize(
    ("said", "told", "alike"),
    [
        (["a", "b"], ("a", "b"), True),
        (["a", "b", "c"], ("a", OMITTED, "c"), True),
        (["a", "c"], ("a", OMITTED, "c"), True),
        (["a", "b"], ("a",), False),
        (["a", "[exit 1]"], ("a",), False),
        (["a"], ("a", "b"), False),
    ],
    ids=["equal", "lines left out", "none left out", "more", "exit code", "less"],
)
def test_a_page_that_says_something_else_is_found(
    said: list[str], told: tuple[str, ...], alike: bool
) -> None:
    assert is_as_told(said, told) is alike
