"""Every way out, from every place a candidate's code runs in: refused, and reported."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conversation import AGENTS, Driver, Heard, call, response, text

WAYS = {
    "by_affinity": {"sched_setaffinity"},
    "by_chmod": {"chmod", "fchmodat"},
    "by_ctypes_fork": {"clone"},
    "by_ctypes_mkdir": {"mkdir", "mkdirat"},
    "by_ctypes_socket": {"socket"},
    "by_ctypes_system": {"clone"},
    "by_ctypes_unix_socket": {"socket"},
    "by_ctypes_write": {"creat", "openat"},
    "by_datagram": {"socket.__new__"},
    "by_dir_fd": {"openat"},
    "by_fifo": {"mknod", "mknodat"},
    "by_fork": {"os.fork"},
    "by_grpc": {"socket"},
    "by_limit": {"prlimit64"},
    "by_link": {"open"},
    "by_lock": {"flock"},
    "by_memory": {"open"},
    "by_mknod": {"mknod", "mknodat"},
    "by_name_lookup": {"socket.getaddrinfo"},
    "by_priority": {"setpriority"},
    "by_ptrace": {"ptrace"},
    "by_python_socket": {"socket.getaddrinfo"},
    "by_removal": {"os.remove"},
    "by_signal": {"kill"},
    "by_subprocess": {"subprocess.Popen"},
    "by_system": {"os.system"},
    "by_unix_socket": {"socket"},
    "by_write": {"open"},
}
"""What reports each way: an audit event, or the system call that the warden saw.

The C library chooses the call, and chooses otherwise on other processors.
"""


@dataclass
class World:
    """What lies outside: a folder, a TCP port and a socket file, each seeing who comes."""

    folder: Path
    port: int
    socket_file: Path
    visitors: list[str]

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "there").write_text("untouched")
    (folder / "there").chmod(0o600)
    socket_file = tmp_path_factory.mktemp("run") / "daemon.sock"
    visitors: list[str] = []
    tcp = socket.create_server(("127.0.0.1", 0))
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    unix.bind(str(socket_file))
    unix.listen()

    def wait(server: socket.socket, name: str) -> None:
        try:
            while True:
                server.accept()[0].close()
                visitors.append(name)
        except OSError:
            return  # the test is over

    for server, name in ((tcp, "tcp"), (unix, "unix")):
        threading.Thread(target=wait, args=(server, name), daemon=True).start()
    yield World(
        folder=folder, port=tcp.getsockname()[1], socket_file=socket_file, visitors=visitors
    )
    for server in (tcp, unix):
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.fixture(
    scope="module", params=["import", "agent callback", "tool callback", "workflow node"]
)
def attempt(
    request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory
) -> Heard:
    agent = tmp_path_factory.mktemp("copy") / "escapes"
    shutil.copytree(AGENTS / "escapes", agent)
    return Driver(
        agent=agent,
        models=[response(call("pay", amount=1)), response(text("done"))],
        environment={
            "TRY_FROM": request.param,
            "TRY_OUTSIDE": str(world.folder),
            "TRY_PORT": str(world.port),
            "TRY_UNIX": str(world.socket_file),
        },
    ).run()


def results(heard: Heard) -> dict[str, object]:
    assert heard.steps, (heard.faults, heard.noise)
    found = heard.steps[0].state["results"]
    assert isinstance(found, dict)
    return found


def test_the_kernel_holds_the_candidate(attempt: Heard) -> None:
    assert attempt.ready is not None
    assert attempt.ready.isolation == ["audit", "landlock", "seccomp"]


@pytest.mark.parametrize("way", sorted(WAYS))
def test_the_way_out_is_refused(attempt: Heard, way: str) -> None:
    assert results(attempt)[way] not in {"THROUGH", "kept"}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_the_attempt_is_reported(attempt: Heard, way: str) -> None:
    assert WAYS[way] & {escape.what for escape in attempt.escapes}


def test_the_list_of_ways_is_the_fixtures(attempt: Heard) -> None:
    assert set(results(attempt)) == {*WAYS, "scratch", "secrets"}


def test_the_environment_of_whoever_started_the_candidate_stays_hidden(attempt: Heard) -> None:
    assert results(attempt)["secrets"] == 0


def test_scratch_may_be_written(attempt: Heard) -> None:
    assert results(attempt)["scratch"] == "kept"


def test_nobody_outside_noticed_anything(attempt: Heard, world: World) -> None:
    assert world.visitors == []
    assert world.files() == ["there"]
    assert (world.folder / "there").stat().st_mode & 0o777 == 0o600


def test_the_tool_was_asked_for_and_its_body_never_ran(attempt: Heard) -> None:
    assert attempt.asked == [("pay", {"amount": 1})]
    assert attempt.steps[0].state["bodies"] == []
    assert attempt.steps[0].outcome == "done"


def test_an_attempt_by_python_names_the_line_of_the_candidate(attempt: Heard) -> None:
    details = [e.detail for e in attempt.escapes if e.what == "subprocess.Popen"]
    assert details
    assert all("agent.py:" in detail and "by_subprocess" in detail for detail in details)
