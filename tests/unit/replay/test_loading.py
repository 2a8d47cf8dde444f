"""What is told of an agent that does not load: from its own checkout, wherever that lies."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from backstop.replay.loading import NotLoaded, load


class Broken:
    """A candidate that says one thing, and leaves."""

    def __init__(self, fault: dict[str, str]) -> None:
        self._lines = [msgspec.json.encode(fault)]

    def start(self, _agent: Path) -> Broken:
        """Begin."""
        return self

    def send(self, line: bytes) -> None:
        """Nobody listens."""

    def receive(self) -> bytes | None:
        """What it says."""
        return self._lines.pop() if self._lines else None

    def close(self) -> None:
        """It left."""


def lack(folder: Path, detail: str) -> str:
    """What an agent lacks whose import ends with `detail`."""
    broken = Broken({"t": "fault", "slug": "agent-import", "detail": detail})
    loaded = load(broken, folder, line_at=lambda _file, _line: "")
    assert isinstance(loaded, NotLoaded)
    return str(loaded.missing)


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """An agent's folder, two deep in a checkout."""
    folder = tmp_path / "repo/agents/desk"
    folder.mkdir(parents=True)
    (tmp_path / "repo/.git").mkdir()
    return folder


def test_no_word_of_it_says_where_the_checkout_lies(agent: Path) -> None:
    top = agent.parents[1]
    told = lack(agent, f"Barred: it is barred in a replay: writes {agent}/a.db")
    assert told.startswith("its import writes a.db, and")
    told = lack(agent, f"ValueError: {top}/b.txt or {agent.parent}/c.txt but /etc/d.txt")
    assert told.startswith("its import raised ValueError: ../../b.txt or ../c.txt but /etc/d.txt")
    (top / ".git").rmdir()
    assert f"{top}/b.txt" in lack(agent, f"ValueError: {top}/b.txt")


def test_the_python_that_its_project_asks_for_is_told_where_code_cannot_be_read(
    agent: Path,
) -> None:
    project = agent.parents[1] / "pyproject.toml"
    odd = "SyntaxError: expected '(' (config.py, line 422)"
    assert "asks for Python" not in lack(agent, odd)
    for text in ("[tool.x]\na = 1\n", "[project]\nrequires-python = 3\n", "no toml", "project = 1"):
        project.write_text(text, "utf-8")
        assert "asks for Python" not in lack(agent, odd)
    project.write_text('[project]\nrequires-python = ">=3.13"\n', "utf-8")
    assert lack(agent, odd).endswith("its project asks for Python >=3.13: say --python")
