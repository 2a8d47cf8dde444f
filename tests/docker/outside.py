"""What lies outside a sandbox: listeners that greet whoever reaches them, and a name server."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import docker

NAME: Final = "probe.backstop.test"
_GREETING: Final = b"outside"
_ADDRESS: Final = "192.0.2.1"
_DNS_HEADER: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """Where listeners are, all of them beside the daemon whose socket is `daemon`.

    `host` is an address of this machine that containers can reach; a name server answers there.
    One port serves every protocol; `abstract` and `path` name Unix sockets.
    """

    daemon: str

    host: str
    port: int
    abstract: str
    path: Path

    def told(self, scratch: list[str]) -> dict[str, object]:
        """What the probe is told."""
        names = {"abstract": self.abstract, "path": f"/outside/{self.path.name}", "name": NAME}
        return {"host": self.host, "port": self.port, "scratch": scratch, **names}


def _gateway(client: docker.DockerClient) -> str:
    """This machine's own address on the bridge that containers are put on."""
    address: str = client.networks.get("bridge").attrs["IPAM"]["Config"][0]["Gateway"]
    return address


@contextmanager
def listening(client: docker.DockerClient, *, daemon: str, folder: Path) -> Iterator[Outside]:
    """Listen everywhere until the block ends; the Unix socket with a path lies in `folder`."""
    host = _gateway(client)
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("", 0)))
        port: int = tcp.getsockname()[1]
        tcp6 = stack.enter_context(socket.socket(socket.AF_INET6))
        tcp6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        tcp6.bind(("::", port))
        udp, dns = (
            stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2)
        )
        udp.bind(("", port))
        # Other test processes have name servers there, too, which give the same answers.
        dns.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        dns.bind((host, 53))
        abstract, path = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        name = f"backstop-probe-{port}"
        abstract.bind(f"\0{name}")
        path.bind(str(folder / "socket"))
        (folder / "socket").chmod(0o666)
        for server in (tcp, tcp6, abstract, path):
            server.listen()
            _serve(stack, server, _greet)
        _serve(stack, udp, _echo)
        _serve(stack, dns, _resolve)
        yield Outside(host=host, port=port, abstract=name, path=folder / "socket", daemon=daemon)


def _serve(stack: ExitStack, server: socket.socket, once: Callable[[socket.socket], None]) -> None:
    def serve() -> None:
        try:
            while True:
                once(server)
        except OSError:
            return  # the block is over

    def end() -> None:
        # A datagram socket wakes up all the same, and says that it never was connected.
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        thread.join(5)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    stack.callback(end)


def _greet(server: socket.socket) -> None:
    line, _ = server.accept()
    with line:
        line.sendall(_GREETING)


def _echo(server: socket.socket) -> None:
    said, who = server.recvfrom(512)
    if not said:
        raise OSError("shut down")
    server.sendto(_GREETING, who)


def _resolve(server: socket.socket) -> None:
    """Answer a question for an IPv4 address; any other has no answer."""
    asked, who = server.recvfrom(512)
    if not asked:
        raise OSError("shut down")
    end = asked.index(b"\0", _DNS_HEADER) + 5
    wanted = struct.unpack("!H", asked[end - 4 : end - 2])[0] == 1
    header = asked[:2] + struct.pack("!5H", 0x8180, 1, int(wanted), 0, 0)
    answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(_ADDRESS)
    server.sendto(header + asked[_DNS_HEADER:end] + answer * wanted, who)
