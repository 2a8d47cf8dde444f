"""A bridge of its own for the private daemon, with just the rules that let its containers out.

Two daemons share docker0 and its addresses, and the one that starts later flushes the other's
firewall chains. So the private daemon gets neither: it is told to keep its hands off iptables,
and what is added here is taken away again, rule by rule.
"""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_ADD_BRIDGE: Final = 0x89A0
_DELETE_BRIDGE: Final = 0x89A1
_SET_ADDRESS: Final = 0x8916
_SET_MASK: Final = 0x891C
_SET_FLAGS: Final = 0x8914
_UP: Final = 0x1

_SUBNET: Final = "10.213.{}"
_SUBNETS: Final = 256


@contextmanager
def bridge(name: str) -> Iterator[str]:
    """A bridge with an address, forwarded and masqueraded; both are gone at the end.

    Yields its name. Raises `OSError` where the kernel or its firewall does not let us.
    """
    subnet = _free_subnet()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _ADD_BRIDGE, name.encode() + b"\0")
        try:
            fcntl.ioctl(control, _SET_ADDRESS, _address(name, f"{subnet}.1"))
            fcntl.ioctl(control, _SET_MASK, _address(name, "255.255.255.0"))
            fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh22x", name.encode(), _UP))
            with _let_out(name, f"{subnet}.0/24"):
                yield name
        finally:
            fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh22x", name.encode(), 0))
            fcntl.ioctl(control, _DELETE_BRIDGE, name.encode() + b"\0")


def _address(name: str, ip: str) -> bytes:
    """An `ifreq` that holds an IPv4 address."""
    return struct.pack("16sHH4s16x", name.encode(), socket.AF_INET, 0, socket.inet_aton(ip))


def _free_subnet() -> str:
    """The first three numbers of a subnet that this machine has no route to."""
    table = Path("/proc/net/route").read_text(encoding="ascii").splitlines()[1:]
    taken = {socket.inet_ntoa(struct.pack("=L", int(row.split()[1], 16))) for row in table}
    for number in range(_SUBNETS):
        subnet = _SUBNET.format(number)
        if f"{subnet}.0" not in taken:
            return subnet
    raise OSError("no free subnet: are hundreds of private daemons left behind?")


@contextmanager
def _let_out(name: str, subnet: str) -> Iterator[None]:
    answers = ("-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED")
    rules = (
        ("nat", "POSTROUTING", ("-s", subnet, "!", "-o", name, "-j", "MASQUERADE")),
        ("filter", "FORWARD", ("-i", name, "-j", "ACCEPT")),
        ("filter", "FORWARD", ("-o", name, *answers, "-j", "ACCEPT")),
    )
    with contextlib.ExitStack() as undo:
        for table, chain, rule in rules:
            _iptables(table, "-I", chain, rule)
            undo.callback(_iptables, table, "-D", chain, rule)
        yield


def _iptables(table: str, what: str, chain: str, rule: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["iptables", "-w", "-t", table, what, chain, *rule],
        capture_output=True,
        check=False,
        text=True,
    )
    if done.returncode:
        raise OSError(f"iptables refuses {what} {chain} {' '.join(rule)}: {done.stderr.strip()}")
