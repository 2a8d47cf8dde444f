"""The ground that Docker tests stand on: it is there in time, and nothing of it stays."""

from __future__ import annotations

import os
import selectors
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import docker
import pytest

from tests.docker.base_image import NoInterpreter, interpreter, make
from tests.docker.daemon import answers, start, stop

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.docker


def bridges() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir() if path.name.startswith("bk")}


def wait_for(process: int) -> None:
    """Wait until a process that need not be a child of ours has ended."""
    with os.fdopen(os.pidfd_open(process)) as gone, selectors.DefaultSelector() as ends:
        ends.register(gone, selectors.EVENT_READ)
        assert ends.select(60)


def mounted_in(folder: Path) -> bool:
    return f" {folder}/" in Path("/proc/self/mounts").read_text(encoding="utf-8")


@pytest.fixture
def folder(lone_client: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for one more daemon, on a machine that can have one."""
    return tmp_path_factory.mktemp("d") / "daemon"


def test_a_daemon_ends_with_its_owner_even_when_that_is_killed(folder: Path) -> None:
    owner = subprocess.Popen(["sleep", "600"])
    url = start(folder, owner=owner.pid)
    keeper = int((folder / "keeper.pid").read_text())
    link = f"bk{keeper}"
    assert answers(folder / "docker.sock")
    assert link in bridges()
    owner.kill()
    owner.wait()
    wait_for(keeper)
    assert not folder.exists()
    assert not answers(Path(url.removeprefix("unix://")))
    assert link not in bridges()
    rules = subprocess.run(["iptables-save"], check=True, capture_output=True, text=True).stdout
    assert link not in rules


def test_starters_at_the_same_time_get_one_daemon(folder: Path) -> None:
    try:
        with ThreadPoolExecutor(4) as pool:
            urls = set(pool.map(lambda _: start(folder), range(4)))
        assert urls == {f"unix://{folder}/docker.sock"}
    finally:
        stop(folder)
    assert not folder.exists()


def test_a_daemon_is_stopped_with_what_runs_in_it(folder: Path) -> None:
    client = docker.DockerClient(base_url=start(folder), version="auto")
    try:
        client.containers.run(make(client, interpreter()), ["sleep", "600"], detach=True)
        client.close()
        assert mounted_in(folder)
    finally:
        stop(folder)
    assert not folder.exists()
    assert not mounted_in(folder)


def test_the_base_image_has_what_candidates_need(
    docker_client: docker.DockerClient, base_image: str
) -> None:
    code = (
        "import bz2, ctypes, lzma, pip, sqlite3, ssl, sys, uuid, zlib, zoneinfo; print(sys.prefix)"
    )
    said = docker_client.containers.run(
        base_image,
        ["python3", "-I", "-c", code],
        network_mode="none",
        read_only=True,
        remove=True,
        user="65534:65534",
    )
    assert said == b"/usr/local\n"


def test_a_container_reaches_the_network_and_one_without_it_does_not(
    docker_client: docker.DockerClient, base_image: str
) -> None:
    routes = ["python3", "-c", "print(len(open('/proc/net/route').readlines()))"]
    run = docker_client.containers.run
    assert int(run(base_image, routes, remove=True)) > 1
    assert int(run(base_image, routes, remove=True, network_mode="none")) == 1


def test_an_interpreter_that_cannot_be_packed_is_refused() -> None:
    with pytest.raises(NoInterpreter):
        interpreter("/bin/false")
