"""A whole workflow through `act`: action, comment, outputs, exit code, as a runner strings them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.action_runner import events, image
from tests.action_runner.specimen import lay_out
from tests.action_runner.town import Town, rows
from tests.github.fake import TOKEN, fake_github

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("specimen_packages")]

ACTION = ".backstop-action"
WORKFLOW = f"""\
name: Backstop
on: [pull_request]
permissions: {{}}
jobs:
  gate:
    runs-on: ubuntu-24.04
    permissions: {{contents: read, pull-requests: write}}
    steps:
      - uses: actions/checkout@v6
      - id: gate
        uses: ./{ACTION}
      - if: always()
        env:
          GOT: ${{{{ steps.gate.outputs.decision }}}}/${{{{ steps.gate.outputs.duplicates }}}}
        run: echo "the outputs are $GOT"
"""


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up()
        yield town


def check_out(town: Town) -> Path:
    """The change as a checkout with the workflow and the action in it; `act` wants a git."""
    folder = lay_out(town.root / "checkout", "v3")
    (folder / ".github" / "workflows").mkdir(parents=True)
    (folder / ".github" / "workflows" / "backstop.yml").write_text(WORKFLOW)
    for name in ("action.yml", "Dockerfile", ".dockerignore", "entrypoint.py"):
        (folder / ACTION).mkdir(exist_ok=True)
        shutil.copyfile(image.ROOT / name, folder / ACTION / name)
    shutil.copyfile(
        image.ROOT / "requirements-action.txt", folder / ACTION / "requirements-action.txt"
    )
    shutil.copytree(
        image.ROOT / "backstop",
        folder / ACTION / "backstop",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for command in (
        ("init", "--quiet", "--initial-branch", "feature"),
        ("remote", "add", "origin", "https://github.com/octo/repo.git"),
        ("add", "--all"),
        ("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", "v3"),
    ):
        subprocess.run(("git", *command), cwd=folder, check=True, capture_output=True)
    return folder


def test_a_whole_workflow_blocks_v3_in_one_comment(
    town: Town, dockerd: str, base_image: str, tmp_path: Path
) -> None:
    """The action of this checkout, used as a workflow uses it: exit 1, one comment, outputs."""
    folder = check_out(town)
    git = subprocess.run(
        ("git", "rev-parse", "HEAD"), cwd=folder, check=True, capture_output=True, text=True
    )
    head = git.stdout.strip()
    event = tmp_path / "event.json"
    event.write_text(json.dumps(events.pull_request(base=town.base, head=head)))
    ended = subprocess.run(
        (
            str(Path(sys.executable).parent / "act"),
            *("pull_request", "--rm", "--eventpath", str(event)),
            *("--platform", f"ubuntu-24.04={base_image}", "--pull=false", "--action-offline-mode"),
            *("--secret", f"GITHUB_TOKEN={TOKEN}", "--env", f"GITHUB_API_URL={town.github.url}"),
            *("--container-daemon-socket", dockerd, "--network", "host"),
        ),
        cwd=folder,
        env={**os.environ, "DOCKER_HOST": dockerd, "HOME": str(tmp_path), "DOCKER_BUILDKIT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = ended.stdout[-6000:] + ended.stderr[-6000:]
    assert ended.returncode == 1, told
    assert len(town.comments) == 1, told
    (comment,) = town.comments
    assert rows(comment, "DUPLICATE") == 3, comment + told
    assert "the outputs are BLOCK/3" in ended.stdout
