"""Which version an agent folder is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from backstop.adapters.content import content_digest, version_of
from backstop.errors import BackstopError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    agent = tmp_path / "agent"
    (agent / "prompts").mkdir(parents=True)
    (agent / "agent.py").write_text("root_agent = 1\n")
    (agent / "prompts" / "hello.txt").write_text("hello")
    return agent


def test_equal_content_is_an_equal_version_wherever_it_lies(folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    before = content_digest(folder)
    folder.rename(moved)
    assert content_digest(moved) == before
    assert version_of(moved) == before[:32]


def test_running_an_agent_does_not_change_its_version(folder: Path) -> None:
    before = content_digest(folder)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "agent.cpython-311.pyc").write_bytes(b"code")
    (folder / "agent.pyc").write_bytes(b"code")
    (folder / ".env").write_text("SECRET=1")
    assert content_digest(folder) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "agent.py").write_text("root_agent = 2\n"),
        lambda folder: (folder / "more.py").write_text(""),
        lambda folder: (folder / "agent.py").rename(folder / "agents.py"),
        lambda folder: (folder / "prompts" / "hello.txt").unlink(),
        lambda folder: (folder / "prompts2").symlink_to("prompts"),
    ],
    ids=["edited", "added", "renamed", "removed", "linked"],
)
def test_any_change_of_the_files_is_another_version(
    folder: Path, change: Callable[[Path], object]
) -> None:
    before = content_digest(folder)
    change(folder)
    assert content_digest(folder) != before


def test_no_other_split_into_names_and_contents_is_the_same_version(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, files in ((one, {"a": "bc", "d": ""}), (other, {"a": "b", "cd": ""})):
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    assert content_digest(one) != content_digest(other)


def test_a_link_within_the_folder_counts_as_what_it_names(folder: Path) -> None:
    (folder / "greeting.txt").symlink_to(folder / "prompts" / "hello.txt")
    before = content_digest(folder)
    (folder / "prompts" / "hello.txt").write_text("good day")
    assert content_digest(folder) != before


def test_a_link_out_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("x = 1")
    (folder / "inside.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(BackstopError, match="leaves the agent folder") as caught:
        content_digest(folder)
    assert caught.value.slug == "agent-content"


def test_a_missing_folder_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BackstopError, match="no such agent folder") as caught:
        content_digest(tmp_path / "nowhere")
    assert caught.value.slug == "agent-missing"


@pytest.mark.parametrize("kind", ["dangling link", "pipe"])
def test_what_is_no_file_does_not_hang_or_count(folder: Path, kind: str) -> None:
    before = content_digest(folder)
    if kind == "pipe":
        os.mkfifo(folder / "pipe")
    else:
        (folder / "dangling").symlink_to(folder / "gone")
    assert content_digest(folder) == before
