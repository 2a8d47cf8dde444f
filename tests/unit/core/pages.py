"""Ledger files for the tests of the format, and how each reader refuses a broken one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec
import pytest

from backstop.core import ledgerfile
from backstop.core.events import Seal
from backstop.core.sealing import encode
from backstop.errors import LedgerError

TWO_RUNS = """
tool pay identity vendor
tool check reads
run r1
step s1
model check pay
read check{ref: 7} -> {free: true}
commit pay{vendor: acme} -> {ok: true}
advance
run r2
step t1
model pay
commit pay{vendor: umbra} -> {ok: true}
advance
close complete
run r1
close complete
"""
OTHER = """
run x1
step s1
commit mail{to: ann}
advance
close complete
"""


def lines_of(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def reseal(data: bytes) -> bytes:
    """Make the seal's digest fit the lines again, as somebody would who hides a change."""
    *body, last = lines_of(data)
    seal = msgspec.json.decode(last, type=Seal)
    digest = hashlib.sha256(b"".join(body)).hexdigest()
    fixed = msgspec.structs.replace(seal, digest=digest, events=len(body) - 1)
    return b"".join(body) + encode(fixed) + b"\n"


def refusal(reader: Callable[[bytes], object], data: bytes) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        reader(data)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("L.jsonl")
    return caught.value


def read(data: bytes) -> object:
    return ledgerfile.read(data, name="L.jsonl")


def verify(data: bytes) -> object:
    return ledgerfile.verify((data,), name="L.jsonl")


def stream(data: bytes) -> object:
    return list(ledgerfile.read_batches((data,), name="L.jsonl"))


READERS = pytest.mark.parametrize("reader", [read, verify, stream])
