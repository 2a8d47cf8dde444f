"""Where a candidate's relative paths begin, and what its code names around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop.adapters.project import data_around, project_of


def laid(root: Path, *files: str) -> Path:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(file, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("files", "start"),
    [
        (["pyproject.toml"], "."),
        (["pyproject.toml", "team/setup.py"], "team"),
        (["pyproject.toml", "team/requirements.txt"], "team"),
        (["team/desk/requirements.txt"], "."),
        (["team/desk/pyproject.toml"], "team/desk"),
        ([], "."),
    ],
)
def test_it_is_the_nearest_folder_that_is_a_projects_else_the_checkouts_top(
    tmp_path: Path, files: list[str], start: str
) -> None:
    """What a deployment of one agent installs lies in its folder, and makes it no project."""
    top = laid(tmp_path / "top", "team/desk/agent.py", *files)
    laid(tmp_path, "pyproject.toml")
    assert project_of(top / "team/desk", [tmp_path / "other", top]) == (top / start).resolve()


def test_a_checkout_that_nobody_names_begins_at_its_history(tmp_path: Path) -> None:
    laid(tmp_path, "pyproject.toml", "top/.git/HEAD", "top/team/desk/agent.py")
    assert project_of(tmp_path / "top/team/desk") == tmp_path / "top"


def test_around_an_agent_in_no_checkout_nothing_is_searched(tmp_path: Path) -> None:
    laid(tmp_path, "pyproject.toml", "team/desk/agent.py")
    assert project_of(tmp_path / "team/desk") == tmp_path / "team"
    assert project_of(tmp_path / "team/desk", [tmp_path / "team/desk"]) == tmp_path / "team"


def test_files_that_names_lead_to_are_told_from_the_agents_folder(tmp_path: Path) -> None:
    laid(
        tmp_path,
        *("src/desk/agent.py", "src/desk/own.txt", "src/near.txt", "data/a.csv", "data/b.csv"),
        *("deep/er/c.csv", "prompts/x.md", "prompts/y.md", "lib.py"),
    )

    def named(*names: str) -> list[str]:
        return sorted(data_around(tmp_path / "src/desk", names, project=tmp_path))

    assert named("data/a.csv") == ["../../data/a.csv"]
    assert named("data", "b.csv", "near.txt") == ["../../data/b.csv", "../near.txt"]
    assert named("deep", "er", "c.csv") == ["../../deep/er/c.csv"]
    assert named("prompts/") == ["../../prompts/x.md", "../../prompts/y.md"]
    assert named("data", "lib.py", "own.txt", "no.txt", "..", ".") == []


def test_a_digest_is_of_the_content_and_nothing_outside_of_the_project_is_read(
    tmp_path: Path,
) -> None:
    top = laid(tmp_path / "top", "desk/agent.py", "a.txt", "b.txt")
    laid(tmp_path, "secret.txt")
    (top / "link.txt").symlink_to(tmp_path / "secret.txt")
    (top / "out").symlink_to(tmp_path, target_is_directory=True)
    names = ["a.txt", "b.txt", "link.txt", "out/", "secret.txt", "../secret.txt", "../../"]
    first = data_around(top / "desk", names, project=top)
    assert sorted(first) == ["../a.txt", "../b.txt"]
    (top / "a.txt").write_text("other", encoding="utf-8")
    second = data_around(top / "desk", names, project=top)
    assert {name for name in first if first[name] != second[name]} == {"../a.txt"}


def test_so_many_folders_are_looked_into_and_no_more(tmp_path: Path) -> None:
    laid(tmp_path, "desk/agent.py", *(f"d{number}/x.txt" for number in range(100)))
    names = [*(f"d{number}" for number in range(100)), "x.txt"]
    assert len(data_around(tmp_path / "desk", names, project=tmp_path)) == 63
