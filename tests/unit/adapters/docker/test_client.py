"""Why there is no daemon to be used, in one line each."""

from __future__ import annotations

import json
import os
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socket import create_server

import pytest
from docker.errors import APIError

from backstop.adapters.docker.client import OLDEST_API, asking, connect
from backstop.errors import SandboxError


@contextmanager
def daemon(socket: Path, version: str) -> Iterator[str]:
    """A daemon that can say its version, and nothing else."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"ApiVersion": version, "Version": "test"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def address_string(self) -> str:
            return "unix"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    with socketserver.ThreadingUnixStreamServer(str(socket), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"unix://{socket}"
        server.shutdown()
        thread.join()


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Without root's right to open everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def refused(url: str) -> SandboxError:
    with pytest.raises(SandboxError) as caught:
        connect(url)
    assert "\n" not in str(caught.value)
    assert url in str(caught.value)
    return caught.value


def test_no_socket_is_one_line_that_says_where(tmp_path: Path) -> None:
    error = refused(f"unix://{tmp_path}/none.sock")
    assert error.slug == "docker-missing"
    assert "DOCKER_HOST" in str(error)
    assert "--runtime none" in str(error)


def test_a_socket_that_nobody_listens_on_is_the_same(tmp_path: Path) -> None:
    with daemon(tmp_path / "docker.sock", "1.44") as url:
        pass
    assert refused(url).slug == "docker-missing"


def test_a_url_that_is_none_is_one_line() -> None:
    assert refused("nonsense://").slug == "docker-missing"


def test_a_port_that_nobody_listens_on_is_told_in_the_words_of_the_system() -> None:
    with create_server(("127.0.0.1", 0)) as free:
        url = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    error = refused(url)
    assert error.slug == "docker-missing"
    assert "cannot be talked to: Connection refused; check DOCKER_HOST" in str(error)


def test_podman_is_told_its_own_variable() -> None:
    with pytest.raises(SandboxError) as caught:
        connect("unix:///nowhere/podman.sock", podman=True)
    assert "CONTAINER_HOST" in str(caught.value)
    assert "DOCKER_HOST" not in str(caught.value)


def test_a_socket_without_rights_is_told_as_such(tmp_path: Path) -> None:
    socket = tmp_path / "docker.sock"
    with daemon(socket, "1.44") as url:
        socket.chmod(0)
        with as_somebody_else():
            error = refused(url)
    assert error.slug == "docker-denied"
    assert "group" in str(error)


@pytest.mark.parametrize("version", ["1.12", "1.40"])
def test_a_daemon_that_is_too_old_is_told_which_would_do(tmp_path: Path, version: str) -> None:
    with daemon(tmp_path / "docker.sock", version) as url:
        error = refused(url)
    assert error.slug == "docker-too-old"
    assert version in str(error)
    assert "1.41" in str(error)
    assert "system calls" in str(error)


def test_a_daemon_whose_version_is_none_is_told_so(tmp_path: Path) -> None:
    with daemon(tmp_path / "docker.sock", "latest") as url:
        assert "latest" in str(refused(url))


def test_the_oldest_daemon_that_serves_is_taken(tmp_path: Path) -> None:
    oldest = ".".join(map(str, OLDEST_API))
    with daemon(tmp_path / "docker.sock", oldest) as url:
        client = connect(url)
        assert client.api.api_version == oldest
        client.close()


def refuse() -> None:
    with asking("make a container"):
        raise APIError("500 Server Error", explanation="no space\nleft on device")


def test_what_a_daemon_refuses_is_told_in_its_words() -> None:
    with pytest.raises(SandboxError, match=r"could not make a container: no space left") as caught:
        refuse()
    assert caught.value.slug == "docker"


def hang_up() -> None:
    with asking("make a container"):
        raise ConnectionResetError("hung up")


def test_a_daemon_that_hangs_up_is_told_as_such() -> None:
    with pytest.raises(SandboxError, match="did not make a container: hung up"):
        hang_up()
