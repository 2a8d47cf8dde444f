"""Docker for tests: one private daemon in a session, however many processes run the tests.

A folder of tests gets the fixtures by importing them in its conftest.py. BACKSTOP_TEST_DOCKER
names a daemon to use instead, as ``unix://…``: for whoever works on one test, again and again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import docker
import pytest

from backstop.adapters.docker.building.images import ImageBuilder
from backstop.adapters.docker.building.recipe import Recipe
from tests.conftest import ROOT, daemon_folder
from tests.docker.base_image import NoInterpreter, interpreter, make
from tests.docker.daemon import Unavailable, locked, start, stop


@pytest.fixture(scope="session")
def dockerd() -> str:
    """The URL of the daemon: ``unix://…``."""
    return daemon()


@pytest.fixture(scope="session")
def docker_client(dockerd: str) -> Iterator[docker.DockerClient]:
    """A client of the daemon."""
    client = docker.DockerClient(base_url=dockerd, version="auto", timeout=60)
    yield client
    client.close()


@pytest.fixture(scope="session")
def base_image(dockerd: str, docker_client: docker.DockerClient) -> str:
    """The tag of a slim Python image in the daemon: 3.12 where this machine has one."""
    try:
        with locked(Path(dockerd.removeprefix("unix://")).parent):
            return make(docker_client, interpreter())
    except NoInterpreter as why:
        pytest.skip(str(why))


@pytest.fixture(scope="session")
def specimen_packages(dockerd: str, docker_client: docker.DockerClient, base_image: str) -> None:
    """The specimen's packages are installed in the daemon: once, before anybody needs them.

    That takes minutes. Without this, each process that runs tests would begin it by itself.
    """
    specimen = ROOT / "examples" / "vendor_onboarding"
    builder = ImageBuilder(docker_client, Recipe(base=base_image), checkouts=[specimen])
    with locked(Path(dockerd.removeprefix("unix://")).parent):
        builder.build(specimen / "v1")


@pytest.fixture(scope="module")
def lone_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker.DockerClient]:
    """A client of one more daemon, which nobody else uses: what is left in it, the tests left.

    Whoever names a daemon for tests has no other; nothing else may use that one meanwhile.
    """
    if given := os.environ.get("BACKSTOP_TEST_DOCKER"):
        client = docker.DockerClient(base_url=given, version="auto")
        yield client
        client.close()
        return
    folder = tmp_path_factory.mktemp("lone") / "daemon"
    client = docker.DockerClient(base_url=_started(folder, os.getpid()), version="auto")
    yield client
    client.close()
    stop(folder)


# A fixture that is imported into two folders is two fixtures; the daemon is still one.
@cache
def daemon() -> str:
    """The URL of the session's daemon, started by whoever asks first."""
    if given := os.environ.get("BACKSTOP_TEST_DOCKER"):
        return given
    # A worker of xdist is a child of the process that the session is.
    session = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    return _started(daemon_folder(session), session)


def _started(folder: Path, owner: int) -> str:
    try:
        return start(folder, owner=owner)
    except Unavailable as why:
        pytest.skip(f"no Docker daemon for tests: {why}")
