"""A package index of a test's own, which containers reach: no test needs a hundred megabytes."""

from __future__ import annotations

import base64
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import docker

from backstop.adapters.docker.building import inside

CLOCK = Path(inside.__file__).parent / "clock.txt"


@dataclass
class PackageIndex:
    """What it serves, by file name, and what it was asked for. Silent, it never answers."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    password: str | None = None
    silent: threading.Event = field(default_factory=threading.Event)

    def offer(self, name: str, version: str, modules: Mapping[str, str]) -> None:
        """Serve a wheel with these files."""
        self.files[f"{name}-{version}-py3-none-any.whl"] = wheel(name, version, modules)

    def offer_source(self, name: str, version: str, setup: str) -> None:
        """Serve a source archive, whose setup.py this is."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            member = tarfile.TarInfo(f"{name}-{version}/setup.py")
            member.size = len(setup.encode())
            tar.addfile(member, io.BytesIO(setup.encode()))
        self.files[f"{name}-{version}.tar.gz"] = packed.getvalue()

    @contextmanager
    def never_answering(self) -> Iterator[None]:
        """Take connections, and say nothing on them."""
        self.silent.set()
        try:
            yield
        finally:
            self.silent.clear()


def wheel(name: str, version: str, modules: Mapping[str, str]) -> bytes:
    """A wheel that holds these files."""
    info = f"{name}-{version}.dist-info"
    files = {
        **{path: text.encode() for path, text in modules.items()},
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\n"
        b"Tag: py3-none-any\n",
    }
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(data)}\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, data in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(path, data)
    return packed.getvalue()


@contextmanager
def package_index(client: docker.DockerClient, base: str) -> Iterator[PackageIndex]:
    """An index that serves our clock for the Python of image `base`, and what a test offers."""
    python, gateway = _ask(client, base)
    server = ThreadingHTTPServer(("0.0.0.0", 0), _Handler)  # noqa: S104 - containers call
    server.daemon_threads = True
    index = PackageIndex(address=f"http://{gateway}:{server.server_address[1]}/simple/")
    server.index = index  # type: ignore[attr-defined]  # where a handler finds it
    for name, data in _clock(python).items():
        index.files[name] = data
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _ask(client: docker.DockerClient, base: str) -> tuple[str, str]:
    """The version of an image's Python, and the address of this machine in a container."""
    code = "import sys; print('%d.%d' % sys.version_info[:2], open('/proc/net/route').read())"
    said = bytes(client.containers.run(base, ["python3", "-c", code], entrypoint=[], remove=True))
    version, _, table = said.decode().partition(" ")
    routes = [line.split() for line in table.splitlines()[1:]]
    gateway = next(route[2] for route in routes if route[1] == "00000000")
    return version, str(ip_address(int.from_bytes(bytes.fromhex(gateway), "little")))


def _clock(python: str) -> Mapping[str, bytes]:
    """The wheel of our clock, as the real index has it: its hash is looked at."""
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        call += ["--disable-pip-version-check", "--only-binary", ":all:", "--require-hashes"]
        subprocess.run([*call, "--python-version", python, "-r", str(CLOCK)], check=True)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        index: PackageIndex = self.server.index  # type: ignore[attr-defined]  # set above
        index.asked.append(self.path)
        if index.silent.is_set():
            index.silent.wait()
            threading.Event().wait(30)
        if index.password and index.password not in _password(self.headers):
            self._answer(401, b"", [("WWW-Authenticate", 'Basic realm="x"')])
            return
        kind, _, name = self.path.strip("/").partition("/")
        if kind == "files" and name in index.files:
            self._answer(200, index.files[name], [])
            return
        wanted = name.replace("-", "_")
        found = [file for file in index.files if file.replace("-", "_").startswith(f"{wanted}_")]
        page = "".join(f'<a href="/files/{file}">{file}</a><br>' for file in found)
        self._answer(200 if found else 404, page.encode(), [("Content-Type", "text/html")])

    def _answer(self, status: int, body: bytes, headers: list[tuple[str, str]]) -> None:
        self.send_response(status)
        for name, value in [*headers, ("Content-Length", str(len(body)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - theirs
        """Say nothing on the terminal."""


def _password(headers: Any) -> str:
    said = headers.get("Authorization", "").partition(" ")[2]
    return base64.b64decode(said).decode()
