"""The action as the runner runs it: its own image, on a daemon, against a GitHub on loopback.

Between the two stands a proxy that holds both to GitHub's own description of its API.
"""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_network
from pathlib import Path
from socketserver import ThreadingUnixStreamServer

import docker
import pytest

from backstop.adapters.docker.sweeping import OWNER
from backstop.adapters.owners import liveness_of
from backstop.ports import Liveness
from tests.action_runner import image
from tests.action_runner.described import described
from tests.action_runner.runner import ActionRunner, Ended, Step
from tests.action_runner.town import Town, rows
from tests.github.fake import fake_github

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("specimen_packages")]

CACHE = ".backstop-cache"
INPUTS = {"runtime": "docker", "cache-dir": CACHE, "cache-secret": "5" * 64}


@pytest.fixture(scope="session")
def action_image(dockerd: str, base_image: str) -> str:
    return image.build(dockerd)


@pytest.fixture
def runner(docker_client: docker.DockerClient, action_image: str, tmp_path: Path) -> ActionRunner:
    return ActionRunner(docker_client, image=action_image, root=tmp_path / "runner")


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with fake_github() as github, described(github) as proxy:
        town = Town(github=github, root=tmp_path, api=proxy)
        town.set_up()
        yield town


def step_of(town: Town, dockerd: str) -> Step:
    """The pull request, with a daemon mounted and a container asked for."""
    town.runs += 1
    step = town.step(inputs=INPUTS)
    return replace(step, socket=Path(dockerd.removeprefix("unix://")))


def test_the_whole_gate_in_containers(
    runner: ActionRunner, town: Town, dockerd: str, docker_client: docker.DockerClient
) -> None:
    """v3: exit 1 and three rows in one comment; again: the same comment; v1: exit 0."""
    first = runner.run(step_of(town, dockerd))
    assert first.exit_code == 1, first.raw
    (comment,) = town.comments
    assert rows(comment, "DUPLICATE") == 3
    assert first.outputs["duplicates"] == "3"
    # What actions/cache would bring back.
    shutil.copytree(first.workspace / CACHE, town.head / CACHE)
    again = runner.run(step_of(town, dockerd))
    assert again.exit_code == 1, again.raw
    assert "replays of an earlier gate, judged anew" in again.log.text
    assert again.outputs["verdict-digest"] == first.outputs["verdict-digest"]
    assert len(town.comments) == 1
    town.move_on("v1")
    town.touch()
    passed = runner.run(step_of(town, dockerd))
    assert passed.exit_code == 0, passed.raw
    assert len(town.comments) == 1
    assert "Backstop: pass" in town.comments[0]
    assert not left_by_actions(docker_client)


def left_by_actions(client: docker.DockerClient) -> list[str]:
    """Containers whose owner ran in a container itself; other tests have theirs beside them."""
    found = client.containers.list(all=True, filters={"label": OWNER}, ignore_removed=True)
    return [str(one.id) for one in found if liveness_of(one.labels[OWNER]) is Liveness.UNKNOWN]


def said_everywhere(ended: Ended, town: Town, words: str) -> None:
    """One clear line in log, annotation, summary and comment; never green."""
    assert ended.exit_code == 2, ended.raw
    (line,) = [line for line in ended.log.lines if line.startswith("error[")]
    (error,) = ended.log.named("error")
    (comment,) = town.comments
    for place in (line, error.data, ended.summary, comment):
        assert words in place.replace("`", "").replace("\\", ""), place
    assert "Traceback" not in ended.raw


def test_no_docker_socket(runner: ActionRunner, town: Town, dockerd: str) -> None:
    said_everywhere(
        runner.run(replace(step_of(town, dockerd), socket=None)), town, "daemon listens"
    )


def test_a_daemon_that_is_too_old(
    runner: ActionRunner, town: Town, dockerd: str, tmp_path: Path
) -> None:
    with old_daemon(tmp_path / "old.sock") as path:
        ended = runner.run(replace(step_of(town, dockerd), socket=path))
    said_everywhere(ended, town, "speaks version 1.22")


def test_a_base_image_that_is_not_there(runner: ActionRunner, town: Town, dockerd: str) -> None:
    rule(town, "sandbox: {kind: docker, build: {base: 'localhost:1/nowhere:1'}}")
    said_everywhere(runner.run(step_of(town, dockerd)), town, "localhost:1/nowhere:1")


def test_a_candidate_that_does_not_build(runner: ActionRunner, town: Town, dockerd: str) -> None:
    (town.head / "requirements.txt").write_text("google-adk==0.0.0.dev0\n")
    said_everywhere(runner.run(step_of(town, dockerd)), town, "google-adk==0.0.0.dev0")


def test_a_build_that_hangs(
    runner: ActionRunner, town: Town, dockerd: str, docker_client: docker.DockerClient
) -> None:
    """An index that never answers: the build ends at its deadline, and nothing is left of it."""
    with silent_server(gateway_of(docker_client)) as address:
        rule(town, f"sandbox: {{kind: docker, build: {{index: '{address}', wall: 5s}}}}")
        (town.head / "requirements.txt").write_text("google-adk==2.11.0 # another one\n")
        ended = runner.run(step_of(town, dockerd))
    said_everywhere(ended, town, "5 s")
    assert not docker_client.containers.list(all=True, filters={"label": "dev.backstop.build"})


def test_the_image_holds_the_package_and_nothing_else_of_the_checkout(
    docker_client: docker.DockerClient, action_image: str
) -> None:
    listed = docker_client.containers.run(
        action_image,
        ["-c", "import os; print(sorted(os.listdir('/opt/backstop')))"],
        entrypoint="python",
        remove=True,
        network_mode="none",
    )
    assert listed.decode().strip() == str(
        ["__pycache__", "backstop", "entrypoint.py", "requirements-action.txt"]
    )
    assert image.size_of(docker_client) < 260_000_000


def rule(town: Town, line: str) -> None:
    """Have the base and the change say `line` in their configuration."""
    for folder in (town.root / "base", town.head):
        with (folder / "backstop.yaml").open("a") as file:
            file.write(f"{line}\n")
    town.base = town.github.commit_folder(town.root / "base")


@contextmanager
def old_daemon(path: Path) -> Iterator[Path]:
    """A socket where a daemon of long ago says which version it is."""
    body = json.dumps({"Version": "1.10.3", "ApiVersion": "1.22", "MinAPIVersion": "1.12"})

    class Handler(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def address_string(self) -> str:
            return "a socket has no address"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingUnixStreamServer(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield path
        server.shutdown()


def gateway_of(client: docker.DockerClient) -> str:
    """This machine's address on the bridge that builds are on."""
    network = client.networks.get("bridge").attrs["IPAM"]["Config"][0]
    return str(network.get("Gateway") or ip_network(network["Subnet"])[1])


@contextmanager
def silent_server(bridge: str) -> Iterator[str]:
    """An address in the daemon's reach that takes connections and says nothing."""
    with socket.create_server((bridge, 0), backlog=64) as server:
        yield f"http://{bridge}:{server.getsockname()[1]}/simple"
