"""Every way out of the docker sandbox: none gets through.

The controls try the same ways in containers that are not hardened, beside the listeners and
with what such a container must not have: what a detector reports there, it would report here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import docker
import pytest

from backstop.adapters.docker.building.built import SOURCE, Built
from backstop.adapters.docker.hardening import HARNESS, SCRATCH
from backstop.adapters.docker.sandbox import DockerSandbox
from tests.docker.containers import run
from tests.docker.open_doors import open_doors
from tests.docker.outside import Outside, listening
from tests.docker.ways import MODULE, WAYS, bundle, command, report

pytestmark = pytest.mark.docker

# Message queues lie in a namespace of the container's own, bounded by the kernel, gone with it.
WRITABLE = [str(SCRATCH), str(HARNESS), "/dev/mqueue"]

UNKNOWN_HERE = {"EADDRNOTAVAIL", "EAFNOSUPPORT", "ENODEV", "ENOENT", "ENOSYS", "SIGSEGV"}
"""What a kernel says of a thing that it does not have at all; nobody gets out by that either."""


@pytest.fixture(scope="module")
def outside(
    dockerd: str, docker_client: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outside]:
    daemon = dockerd.removeprefix("unix://")
    folder = tmp_path_factory.mktemp("outside")
    with listening(docker_client, daemon=daemon, folder=folder) as found:
        yield found


@pytest.fixture(scope="module")
def candidate(
    docker_client: docker.DockerClient, base_image: str, outside: Outside
) -> dict[str, str]:
    """What gets out of the docker sandbox, tried by what runs in it instead of the harness."""
    image = str(docker_client.images.get(base_image).id)
    sandbox = DockerSandbox(
        docker_client,
        lambda _: Built(
            image=image, agent=SOURCE / "agent", start=SOURCE, python="/usr/local/bin/python3"
        ),
        bundle=partial(bundle, outside.told(WRITABLE)),
        module=MODULE,
    )
    with sandbox.start(Path("agent")) as conversation:
        found: dict[str, str] = json.loads(conversation.receive() or conversation.noise)
        return found


@pytest.fixture(scope="module")
def control(
    docker_client: docker.DockerClient, base_image: str, outside: Outside
) -> list[dict[str, str]]:
    """What gets out of two containers that hold nobody back: on the bridge, and on this machine."""
    attempt = command(outside.told(["/tmp"]))  # noqa: S108 - in the container
    doors = [
        open_doors(base_image, attempt, outside=outside, network=network)
        for network in ("bridge", "host")
    ]
    return [json.loads(run(docker_client, config)) for config in doors]


@pytest.mark.parametrize("way", WAYS)
def test_the_way_out_is_closed(candidate: dict[str, str], way: str) -> None:
    assert not candidate[way].startswith(("through", "broken"))


@pytest.mark.parametrize("way", WAYS)
def test_the_same_attempt_gets_out_of_a_container_that_is_not_hardened(
    control: list[dict[str, str]], way: str
) -> None:
    said = [found[way] for found in control]
    assert any(text.startswith("through") for text in said) or set(said) <= UNKNOWN_HERE


def test_most_ways_are_open_where_nobody_is_held_back(control: list[dict[str, str]]) -> None:
    through = {way for found in control for way, said in found.items() if said[:7] == "through"}
    assert len(through) >= 60


def test_the_probe_refuses_to_run_outside_a_container() -> None:
    code = f"from {report.__name__} import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "{}"], capture_output=True, check=False, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "the probe runs only as the main process of a container\n"
