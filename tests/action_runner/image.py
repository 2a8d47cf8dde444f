"""The action's image, built once in a session as the runner builds it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import docker

from tests.docker.daemon import locked

ROOT: Final = Path(__file__).parents[2]
TAG: Final = "backstop-action:under-test"


def build(dockerd: str) -> str:
    """Build the action in the daemon at `dockerd`; the image's tag.

    With the builder that asks the least of a Dockerfile. Workers that come later find all
    layers there.
    """
    command = ("docker", "build", "--quiet", "--force-rm", "--tag", TAG)
    environment = {**os.environ, "DOCKER_HOST": dockerd, "DOCKER_BUILDKIT": "0"}
    with locked(Path(dockerd.removeprefix("unix://")).parent):
        built = subprocess.run(
            (*command, "--file", str(ROOT / "Dockerfile"), str(ROOT)),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if built.returncode:
        raise AssertionError(f"the action does not build:\n{built.stdout}\n{built.stderr}")
    return TAG


def size_of(client: docker.DockerClient) -> int:
    """Bytes of the image, its base included."""
    return int(client.images.get(TAG).attrs["Size"])
