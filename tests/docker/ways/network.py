"""Ways out over the network, and over sockets of every family."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from typing import Any, Final

from tests.docker.ways.entry import way
from tests.docker.ways.files import any_of

_LINK_LOCAL: Final = "169.254.169.254"
_TEST_NET: Final = "203.0.113.7"


@way("tcp to the host")
def _tcp(outside: dict[str, Any]) -> object:
    return _on_its_way(socket.SOCK_STREAM, outside["host"], outside["port"])


@way("udp to the host")
def _udp(outside: dict[str, Any]) -> object:
    return _on_its_way(socket.SOCK_DGRAM, outside["host"], outside["port"])


@way("tcp to a link-local address")
def _link_local(outside: dict[str, Any]) -> object:
    return _on_its_way(socket.SOCK_STREAM, _LINK_LOCAL, 80)


@way("tcp to a test network")
def _test_net(outside: dict[str, Any]) -> object:
    return _on_its_way(socket.SOCK_STREAM, _TEST_NET, 443)


@way("udp to a test network")
def _test_net_udp(outside: dict[str, Any]) -> object:
    return _on_its_way(socket.SOCK_DGRAM, _TEST_NET, 53)


@way("tcp to a broadcast domain")
def _broadcast(outside: dict[str, Any]) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        return line.sendto(b"", ("255.255.255.255", 9))


def _on_its_way(kind: int, host: str, port: int) -> str:
    """Connect without waiting: a packet that has a route is out, answered or not."""
    with socket.socket(socket.AF_INET, kind) as line:
        line.setblocking(False)
        code = line.connect_ex((host, port))
        if code not in {0, errno.EINPROGRESS}:
            raise OSError(code, os.strerror(code))
        return f"a route to {host}"


@way("tcp to the host's loopback")
def _loopback(outside: dict[str, Any]) -> object:
    with socket.create_connection(("127.0.0.1", outside["port"])) as line:
        return line.recv(9)


@way("tcp to the host's loopback, version 6")
def _loopback6(outside: dict[str, Any]) -> object:
    with socket.create_connection(("::1", outside["port"])) as line:
        return line.recv(9)


@way("udp to the host's loopback")
def _loopback_udp(outside: dict[str, Any]) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect(("127.0.0.1", outside["port"]))
        line.send(b"?")
        return line.recv(9)


@way("a name that resolves")
def _dns(outside: dict[str, Any]) -> object:
    return socket.getaddrinfo(outside["name"], 443)[0][4]


@way("a ping")
def _ping(outside: dict[str, Any]) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as line:
        return line.sendto(b"\x08" + bytes(7), (outside["host"], 0))


@way("a raw socket")
def _raw(outside: dict[str, Any]) -> object:
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)


@way("a raw socket, version 6")
def _raw6(outside: dict[str, Any]) -> object:
    return socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)


@way("a packet socket")
def _packet(outside: dict[str, Any]) -> object:
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))


@way("a cooked packet socket")
def _cooked(outside: dict[str, Any]) -> object:
    return socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))


@way("netlink")
def _netlink(outside: dict[str, Any]) -> object:
    line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    line.bind((0, 0))
    return line


@way("vsock")
def _vsock(outside: dict[str, Any]) -> object:
    return socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)


@way("the kernel's ciphers")
def _ciphers(outside: dict[str, Any]) -> object:
    line = socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)
    line.bind(("hash", "sha256"))
    return line


@way("any other family of sockets")
def _families(outside: dict[str, Any]) -> object:
    opened = []
    for family in set(range(64)) - {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6}:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
            with contextlib.suppress(OSError):
                opened.append((socket.socket(family, kind).family, kind))
    return any_of(opened)


@way("an abstract Unix socket")
def _abstract(outside: dict[str, Any]) -> object:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(f"\0{outside['abstract']}")
        return line.recv(9)


@way("a Unix socket in a folder")
def _path(outside: dict[str, Any]) -> object:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(outside["path"])
        return line.recv(9)


@way("the daemon's socket")
def _daemon(outside: dict[str, Any]) -> object:
    for place in ("/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock"):
        with socket.socket(socket.AF_UNIX) as line, contextlib.suppress(OSError):
            line.connect(place)
            return place
    raise OSError(errno.ENOENT, "no such socket")
