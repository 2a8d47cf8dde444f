"""A ledger file that somebody edited, cut, swapped or spliced: refused, naming the line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from backstop.core import ledgerfile
from backstop.core.sealing import encode
from tests.dsl import scenario, sealed
from tests.unit.core.pages import (
    OTHER,
    READERS,
    TWO_RUNS,
    lines_of,
    read,
    refusal,
    reseal,
    stream,
    verify,
)


def test_a_file_cut_in_the_middle_of_a_line_is_truncated(good: bytes) -> None:
    for cut in (len(good) // 3, len(good) // 2, len(good) - 20, len(good) - 1):
        for reader in (read, verify, stream):
            fault = refusal(reader, good[:cut])
            assert fault.slug == "ledger-truncated"
            assert "line" in str(fault)


def test_a_file_cut_between_lines_lacks_its_seal_for_every_reader(good: bytes) -> None:
    rows = lines_of(good)
    for reader in (read, verify, stream):
        assert refusal(reader, b"".join(rows[:7])).slug == "ledger-unsealed"
    assert "after line 7" in str(refusal(verify, b"".join(rows[:7])))
    assert refusal(verify, rows[0][:-3]).slug in {"ledger-format", "ledger-truncated"}
    assert refusal(verify, rows[0][:-1]).slug == "ledger-truncated"


def test_events_that_were_never_linked_nor_sealed_are_unsealed(good: bytes) -> None:
    made = scenario(TWO_RUNS)
    unlinked = b"".join(encode(row) + b"\n" for row in (made.header, *made.events))
    for reader in (read, verify):
        assert refusal(reader, unlinked).slug == "ledger-unsealed"
        assert refusal(reader, encode(made.header) + b"\n").slug == "ledger-unsealed"
    assert refusal(stream, unlinked).slug == "ledger-unsealed"


@READERS
def test_a_flipped_bit_is_refused_and_the_line_named(
    good: bytes, reader: Callable[[bytes], object]
) -> None:
    at = good.index(b'"acme"') + 1
    flipped = good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]
    fault = refusal(reader, flipped)
    assert fault.slug == "ledger-tampered"
    if reader is not stream:
        line = good[:at].count(b"\n") + 1
        assert f"line {line}:" in str(fault)


def test_an_edit_hidden_by_a_new_digest_still_breaks_the_chain(good: bytes) -> None:
    edited = reseal(good.replace(b'"vendor":"acme"', b'"vendor":"ACME"', 1))
    fault = refusal(verify, edited)
    assert fault.slug == "ledger-tampered"
    line = good[: good.index(b'"vendor":"acme"')].count(b"\n") + 1
    assert f"line {line}:" in str(fault)


@pytest.mark.parametrize("change", [lambda link: b"z" + link[1:], bytes.upper, lambda _: b"feed"])
def test_an_edited_link_is_an_edit_of_its_line(
    good: bytes, change: Callable[[bytes], bytes]
) -> None:
    rows = lines_of(good)
    prev = ledgerfile.read(good, name="L").events[4].prev.encode()
    rows[5] = rows[5].replace(prev, change(prev))
    for data in (b"".join(rows), reseal(b"".join(rows))):
        fault = refusal(verify, data)
        assert fault.slug == "ledger-tampered"
        assert "line 6:" in str(fault)


def test_swapped_lines_of_one_run_are_reordered(good: bytes) -> None:
    rows = lines_of(good)
    rows[4], rows[5] = rows[5], rows[4]
    for data in (b"".join(rows), reseal(b"".join(rows))):
        fault = refusal(verify, data)
        assert fault.slug == "ledger-reordered"
        assert "line 5:" in str(fault)
    assert refusal(read, b"".join(rows)).slug == "ledger-reordered"


def test_swapped_lines_of_two_runs_are_reordered(good: bytes) -> None:
    rows = lines_of(good)
    rows[9], rows[10] = rows[10], rows[9]  # r1's cursor and r2's opening
    fault = refusal(read, b"".join(rows))
    assert fault.slug == "ledger-reordered"
    assert "line 11:" in str(fault)


def test_a_lost_line_is_named_by_the_gap(good: bytes) -> None:
    rows = lines_of(good)
    del rows[5]
    fault = refusal(read, b"".join(rows))
    assert fault.slug == "ledger-truncated"
    assert "line 6: 1 of 19 events are missing" in str(fault)
    rows = lines_of(good)
    del rows[-2]
    assert "line 20: 1 of 19 events are missing" in str(refusal(read, b"".join(rows)))


def test_events_of_another_ledger_are_spliced(good: bytes) -> None:
    rows = lines_of(good)
    foreign = lines_of(sealed(OTHER))[1:-1]
    added = b"".join([*rows[:6], *foreign, *rows[6:]])
    for data in (added, reseal(added)):
        assert refusal(verify, data).slug == "ledger-spliced"
        assert "line 7" in str(refusal(verify, data))
    instead = b"".join([*rows[:6], *foreign, *rows[6 + len(foreign) :]])
    fault = refusal(read, instead)
    assert fault.slug == "ledger-spliced"
    assert "line 7" in str(fault)


def test_two_ledgers_in_one_file_are_spliced(good: bytes) -> None:
    fault = refusal(read, good + sealed(OTHER))
    assert fault.slug == "ledger-spliced"
    assert f"line {len(lines_of(good))}: a second seal line" in str(fault)
    assert refusal(read, lines_of(good)[-1]).slug == "ledger-format"
    assert refusal(verify, good[: good.rindex(b'{"t":"seal"')] + sealed(OTHER)).slug == (
        "ledger-spliced"
    )


def test_the_seal_of_another_ledger_does_not_fit(good: bytes) -> None:
    rows, others = lines_of(good), lines_of(sealed(OTHER))
    assert refusal(read, b"".join([*rows[:-1], others[-1]])).slug == "ledger-spliced"


def test_an_edited_header_is_named(good: bytes) -> None:
    edited = good.replace(b'"identity":["vendor"]', b'"identity":["vendoR"]', 1)
    fault = refusal(read, edited)
    assert fault.slug == "ledger-tampered"
    assert "line 1:" in str(fault)


def test_an_edited_seal_is_named(good: bytes) -> None:
    last = len(lines_of(good))
    effects = good.replace(b'"effects":2', b'"effects":3', 1)
    assert refusal(verify, effects).slug == "ledger-tampered"
    assert f"line {last}:" in str(refusal(verify, effects))
    for count in (b"18", b"20"):
        events = good.replace(b'"events":19', b'"events":' + count, 1)
        for reader in (read, verify, stream):
            assert refusal(reader, events).slug == "ledger-tampered"
        assert f"line {last}: the seal was changed" in str(refusal(read, events))
    runs = good.replace(b'"runs":2', b'"runs":3', 1)
    assert f"line {last}: the seal was changed" in str(refusal(verify, runs))
    untagged = good.replace(b'{"t":"seal"', b'{"u":"seal"', 1)
    for reader in (read, verify):
        assert refusal(reader, untagged).slug == "ledger-tampered"
    assert refusal(stream, untagged).slug == "ledger-unsealed"
    twice = good.replace(b'"signature":null', b'"signature":null,"events":19', 1)
    assert refusal(verify, twice).slug == "ledger-tampered"
    unsigned = good.replace(b'"signature":null', b'"signaturf":null', 1)
    assert refusal(verify, unsigned).slug == "ledger-tampered"
    head = ledgerfile.read(good, name="L").seal.heads["r2"].encode()
    other = good.replace(b'"r2":"' + head, b'"r2":"' + head[::-1], 1)
    assert refusal(verify, other).slug == "ledger-tampered"


def test_bytes_after_the_seal_are_refused(good: bytes) -> None:
    for reader in (read, verify, stream):
        assert refusal(reader, good + b"x").slug in {"ledger-truncated", "ledger-unsealed"}
        assert refusal(reader, good + b"\n").slug in {"ledger-spliced", "ledger-unsealed"} | {
            "ledger-format"
        }


@pytest.mark.parametrize(
    ("rewritten", "said"),
    [
        (lambda data: data.replace(b"\n", b"\r\n"), "line 1: it ends in CR LF"),
        (lambda data: b"\xef\xbb\xbf" + data, "line 1: it begins with a byte order mark"),
    ],
)
def test_a_file_that_was_rewritten_on_the_way_says_so(
    good: bytes, rewritten: Callable[[bytes], bytes], said: str
) -> None:
    for reader in (read, verify, stream):
        fault = refusal(reader, rewritten(good))
        assert fault.slug == "ledger-format"
        assert said in str(fault)
        assert ".gitattributes" in str(fault)


def test_damage_that_is_no_text_is_named(good: bytes) -> None:
    rows = lines_of(good)
    rows[6] = rows[6][:20] + b"\0\0\0" + rows[6][23:]
    fault = refusal(verify, b"".join(rows))
    assert fault.slug == "ledger-not-text"
    assert "line 7" in str(fault)
