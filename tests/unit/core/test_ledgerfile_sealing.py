"""Sealing a ledger file: unlinked lines get their links, and nothing is sealed that is wrong."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core import ledgerfile
from backstop.core.events import Header, RunOpened
from backstop.core.sealing import encode
from backstop.errors import LedgerError
from tests.dsl import scenario
from tests.unit.core.pages import (
    TWO_RUNS,
    lines_of,
)


def unsealed(text: str) -> bytes:
    made = scenario(text)
    return b"".join(encode(row) + b"\n" for row in (made.header, *made.events))


def test_sealing_links_unlinked_lines_the_same_way_each_time() -> None:
    once = b"".join(ledgerfile.seal((unsealed(TWO_RUNS),), name="L"))
    read_back = ledgerfile.read(once, name="L").events
    bare = [msgspec.structs.replace(event, prev="") for event in read_back]
    assert bare == scenario(TWO_RUNS).events
    assert ledgerfile.verify((once,), name="L").events == 19
    assert once == b"".join(ledgerfile.seal((unsealed(TWO_RUNS),), name="L"))


def test_sealing_keeps_the_bytes_of_linked_lines(good: bytes) -> None:
    body = good[: good.rindex(b'{"t":"seal"')]
    assert b"".join(ledgerfile.seal((body,), name="L")) == good
    assert b"".join(ledgerfile.seal((body[:-1],), name="L")) == good


def test_sealing_keeps_fields_that_it_does_not_know() -> None:
    rows = unsealed(TWO_RUNS).splitlines()
    rows[0] = rows[0][:-1] + b',"colour":"blue"}'
    rows[3] = rows[3][:-1] + b',"later":{"a": [1, 2]}}'
    data = b"".join(ledgerfile.seal((b"\n".join(rows),), name="L"))
    assert b'"colour":"blue"' in data.splitlines()[0]
    assert b'"later":{"a": [1, 2]}' in data.splitlines()[3]
    assert ledgerfile.verify((data,), name="L").events == 19


def test_sealing_refuses_what_is_sealed_wrongly_linked_or_empty(good: bytes) -> None:
    def slug(data: bytes) -> str:
        with pytest.raises(LedgerError) as caught:
            list(ledgerfile.seal((data,), name="L"))
        return str(caught.value.slug)

    rows = lines_of(good)
    assert slug(good) == "ledger-sealed"
    assert slug(b"") == "ledger-empty"
    assert slug(b"".join([*rows[:4], *rows[5:-1]])) == "ledger-tampered"
    assert slug(b"".join(rows[:3]) + b'{"t":"nope"}\n') == "ledger-format"
    assert slug(b"".join(rows[:3]) + b'{"t":"run_closed","a":NaN}\n') == "ledger-format"
    assert slug(rows[1]) == "ledger-format"


def test_a_seal_that_nobody_could_read_is_not_written() -> None:
    sealer = ledgerfile.Sealer(Header(format=1, agent="desk", canon=1))
    sealer.begin()
    for number in range(80):
        sealer.add(RunOpened(run="r" * 250_000 + str(number), at="2026-01-05T08:00:00Z"))
    with pytest.raises(LedgerError, match="Split the ledger") as caught:
        sealer.end()
    assert caught.value.slug == "ledger-line-too-long"
