"""Building candidates in tests: checkouts, a small index, and what became of it in the daemon."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import pytest
from docker.errors import APIError

from backstop.adapters.docker.building import images
from backstop.adapters.docker.building.built import Built
from backstop.adapters.docker.building.images import ImageBuilder
from backstop.adapters.docker.building.recipe import Recipe
from backstop.errors import SandboxError
from tests.docker.package_index import PackageIndex, package_index

# Each worker of xdist has containers and images of its own in the one daemon.
AT_WORK = {"dev.backstop.test": f"build-{os.getpid()}"}
FOR_EVER = {images.PACKAGES: 1000, images.CANDIDATE: 1000}
"""Other tests have images of their own in this daemon."""
_MINE = f"dev.backstop.small={os.getpid()}"
_AT_WORK_IS = "=".join(*AT_WORK.items())
_ADK = {"google/adk/version.py": "__version__ = '2.13.0'\n"}
_BACKEND = {
    "setuptools/__init__.py": "",
    "setuptools/build_meta.py": "class Old:\n    def __getattr__(self, name):\n"
    "        exec(open('setup.py').read(), {})\n__legacy__ = Old()\n",
}
"""Stands for setuptools: runs setup.py, as the real one does."""


@pytest.fixture(scope="session")
def small_index(docker_client: docker.DockerClient, base_image: str) -> Iterator[PackageIndex]:
    """An index with a google-adk of a few bytes."""
    with package_index(docker_client, base_image) as offering:
        offering.offer("google_adk", "2.13.0", _ADK)
        offering.offer("without_adk", "1.0", {"without_adk.py": ""})
        offering.offer("setuptools", "99.0", _BACKEND)
        offering.offer("wheel", "99.0", {"wheel.py": ""})
        yield offering


@pytest.fixture(scope="session")
def small_base(docker_client: docker.DockerClient, base_image: str) -> Iterator[str]:
    """A base of these tests' own: whatever is made of it bears its label, and goes at the end."""
    file = io.BytesIO(f"FROM {base_image}\nLABEL {_MINE}\n".encode())
    name = f"backstop-test-small:{os.getpid()}"
    docker_client.images.build(fileobj=file, rm=True, forcerm=True, tag=name)
    yield name
    for _ in range(2):  # what lies on another one has to go first
        for image in docker_client.images.list(filters={"label": _MINE}):
            with contextlib.suppress(APIError):
                docker_client.images.remove(str(image.id), force=True)


@pytest.fixture
def building(
    docker_client: docker.DockerClient, small_base: str, small_index: PackageIndex
) -> Iterator[Building]:
    """Builds with the small base and the small index; nothing may be at work afterwards."""
    yield Building(docker_client, small_base, small_index)
    assert at_work(docker_client) == []


class Building:
    """Builds checkouts with the small index."""

    def __init__(self, client: docker.DockerClient, base: str, index: PackageIndex) -> None:
        self.client = client
        self.base = base
        self.index = index
        self.said: list[str] = []

    def builder(
        self, root: Path, *, withheld: tuple[Path, ...] = (), **recipe: object
    ) -> ImageBuilder:
        # To compile the standard library takes longer than all the rest of these builds.
        ours = {"base": self.base, "index": self.index.address, "wall_s": 240.0, "compiled": False}
        chosen = {**ours, **recipe}
        return ImageBuilder(
            self.client,
            Recipe(**chosen),  # type: ignore[arg-type]  # handed on
            checkouts=[root],
            withheld=withheld,
            labels=AT_WORK,
            newest=FOR_EVER,
            say=self.said.append,
        )

    def __call__(self, root: Path, **recipe: object) -> Built:
        return self.builder(root, **recipe).build(root / "agents" / "vendor")  # type: ignore[arg-type]

    def refused(self, root: Path, **recipe: object) -> tuple[str, str]:
        with pytest.raises(SandboxError) as caught:
            self(root, **recipe)
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 2
        return caught.value.slug, str(caught.value)

    def run(self, built: Built, code: str) -> str:
        """What a program says that runs in the image as a candidate does, without a network."""
        said = self.client.containers.run(
            built.image,
            [built.python, "-P", "-c", code],
            entrypoint=[],
            network_mode="none",
            read_only=True,
            remove=True,
            labels=AT_WORK,
        )
        return bytes(said).decode()


def at_work(client: docker.DockerClient) -> list[str]:
    """The containers of these tests that are still there."""
    found = client.api.containers(all=True, filters={"label": _AT_WORK_IS})
    return [str(one["Id"]) for one in found]


def checkout(root: Path, requirements: str = "google-adk==2.13.0\n", **files: str) -> Path:
    written = {
        "agents/vendor/agent.py": "root_agent = None\n",
        "agents/requirements.txt": requirements,
        **files,
    }
    for name, text in written.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def contents(client: docker.DockerClient, image: str) -> tuple[set[str], bytes]:
    """The names in an image, and all its bytes with what the daemon says of it."""
    held = client.containers.create(image, ["true"], labels=AT_WORK)
    try:
        packed = b"".join(map(bytes, held.export()))  # type: ignore[arg-type]  # chunks of bytes
    finally:
        held.remove()
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        names = set(tar.getnames())
    told = json.dumps([client.api.inspect_image(image), client.api.history(image)])  # type: ignore[no-untyped-call]
    return names, packed + told.encode()


@contextmanager
def watched(client: docker.DockerClient) -> Iterator[list[str]]:
    """What becomes of containers of these tests meanwhile: created, started, ended."""
    stream = client.api.events(decode=True, filters={"type": "container", "label": _AT_WORK_IS})
    seen: list[str] = []
    last = threading.Event()

    def listen() -> None:
        for event in stream:
            if event["Actor"]["Attributes"].get("last"):
                last.set()
                return
            seen.append(event["Action"])

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        yield seen
    finally:
        # Events come late, but in order: after this one all are told.
        image = client.images.list()[0]
        client.containers.create(image, ["true"], labels={**AT_WORK, "last": "1"}).remove()
        assert last.wait(30)
        stream.close()
        listener.join()
