"""What the action takes for the base of a change, and what it says where a change moves it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.action_runner.specimen import AGENT, lay_out
from tests.action_runner.town import Town
from tests.github.fake import fake_github


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    """A repository whose base is v1 and whose change, v3, deletes the ledger too."""
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up()
        town.forget()
        yield town


@pytest.mark.parametrize("base", [None, "base"], ids=["fetched", "named"])
def test_d1_a_checkout_in_a_folder_of_the_workspace_is_held_against_its_base(
    town: Town, base: str | None
) -> None:
    """D1, D5: what the base says counts wherever `path` of actions/checkout put the change."""
    workspace = town.root / "workspace"
    shutil.copytree(town.head, workspace / "candidate")
    (workspace / "candidate" / ".git").mkdir()
    inputs = {"config": "candidate/backstop.yaml", "allow-empty": "true"}
    if base is not None:
        shutil.copytree(town.root / "base", workspace / base)
        inputs["base"] = base
    ended = town.run(workspace=workspace, inputs=inputs)
    assert ended.exit_code == 3
    assert "its ledger vanished" in ended.log.text


def test_g08_a_base_without_a_configuration_is_told(town: Town) -> None:
    """G08: nobody takes a change that is judged by its own rules for one that the base judged."""
    town.base = town.github.commit({"README.md": b"Before Backstop.\n"})
    ended = town.run(inputs={"allow-empty": "true"})
    assert "this change brings Backstop in" in ended.summary
    assert "this change brings Backstop in" in town.comments[0]


def test_g09_shared_code_above_the_configuration_concerns_its_agents(tmp_path: Path) -> None:
    """G09: also where a checkout was made without git, and no history says where it begins."""
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        for side in ("base", "head"):
            lay_out(tmp_path / side / "sub", "v1")
            (tmp_path / side / "shared.py").write_text(f"{side} = 1\n")
        town.base, town.head = github.commit_folder(tmp_path / "base"), tmp_path / "head"
        ended = town.run(inputs={"config": "sub/backstop.yaml"})
    assert ended.exit_code == 0
    assert "since shared.py changed" in ended.log.text
    assert ended.outputs["coverage"] == "7/7"


def test_d1_a_change_that_points_an_agent_elsewhere_is_told(town: Town) -> None:
    """D1: a folder that nobody changed would be judged in the place of the one that was."""
    shutil.copytree(town.head / AGENT, town.head / "frozen")
    config = town.head / "backstop.yaml"
    config.write_text(config.read_text().replace(AGENT, "frozen"))
    assert town.run().exit_code == 3
    assert "in another folder than on the base" in town.comments[0]
