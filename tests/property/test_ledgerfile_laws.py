"""Laws of the ledger file, for Hypothesis to attack."""

from __future__ import annotations

import string

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backstop.core import ledgerfile
from backstop.core.events import Event, Header
from backstop.core.sealing import encode
from backstop.errors import LedgerError
from tests.dsl import raw, scenario

NAMES = st.text(alphabet=string.ascii_lowercase + "äß☃", min_size=1, max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TARGETS = st.sampled_from(["ann", "bob", "Zoë"])
EFFECTS = st.sampled_from(["commit", "fail", "flop", "doubt", "block", "read"])


@st.composite
def stories(draw: st.DrawFn, runs: str = "r") -> str:
    """A legal text of the test language: a few runs whose steps interleave."""
    names = [f"{runs}{n}" for n in range(draw(st.integers(1, 3)))]
    lines: list[str] = []
    steps = dict.fromkeys(names, 0)
    fresh = 0
    for _ in range(draw(st.integers(1, 6))):
        run = draw(st.sampled_from(names))
        lines += [f"run {run}", f"step s{steps[run]}"]
        steps[run] += 1
        for _ in range(draw(st.integers(0, 2))):
            fresh += 1
            lines.append(f"{draw(EFFECTS)} pay{{to: {draw(TARGETS)}, n: {fresh}}}")
    return "\n".join(lines)


@st.composite
def ledgers(draw: st.DrawFn, runs: str = "r") -> tuple[Header, list[Event]]:
    """A legal ledger with results of any form."""
    made = scenario(draw(stories(runs=runs)))
    events = [
        msgspec.structs.replace(event, result=raw(draw(VALUES)))
        if hasattr(event, "result")
        else event
        for event in made.events
    ]
    return made.header, events


def file_of(ledger: tuple[Header, list[Event]]) -> bytes:
    return b"".join(ledgerfile.seal_lines(*ledger))


def refused_by_read(data: bytes) -> bool:
    try:
        ledgerfile.read(data, name="L")
    except LedgerError:
        return True
    return False


def refused_by_verify(data: bytes) -> bool:
    try:
        ledgerfile.verify((data,), name="L")
    except LedgerError:
        return True
    return False


@given(ledgers())
def test_reading_what_was_sealed_gives_the_events_back(ledger: tuple[Header, list[Event]]) -> None:
    back = ledgerfile.read(file_of(ledger), name="L")
    assert back.header == ledger[0]
    assert [msgspec.structs.replace(event, prev="") for event in back.events] == ledger[1]
    assert file_of((back.header, back.events)) == file_of(ledger)


@given(ledgers())
def test_sealing_is_deterministic_and_links_unlinked_lines_alike(
    ledger: tuple[Header, list[Event]],
) -> None:
    data = file_of(ledger)
    assert data == file_of(ledger)
    body = data[: data.rindex(b'{"t":"seal"')]
    assert b"".join(ledgerfile.seal((body,), name="L")) == data
    unlinked = b"".join(encode(row) + b"\n" for row in (ledger[0], *ledger[1]))
    linked = b"".join(ledgerfile.seal((unlinked,), name="L"))
    assert ledgerfile.verify((linked,), name="L").events == len(ledger[1])


@given(ledgers(), st.integers(1, 4096))
def test_however_the_bytes_come_all_readers_agree(
    ledger: tuple[Header, list[Event]], size: int
) -> None:
    data = file_of(ledger)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    header, *batches, seal = ledgerfile.read_batches(pieces, name="L")
    whole = ledgerfile.read(data, name="L")
    events = [event for batch in batches if isinstance(batch, list) for event in batch]
    assert (header, events, seal) == (whole.header, whole.events, whole.seal)
    assert ledgerfile.verify(pieces, name="L").digest == whole.digest


@given(ledgers(), st.data())
def test_any_single_changed_byte_is_refused(
    ledger: tuple[Header, list[Event]], data: st.DataObject
) -> None:
    """Before the seal by `read` already; in the seal itself by `verify`, which knows the heads."""
    whole = file_of(ledger)
    seal = whole.rindex(b'{"t":"seal"')
    at = data.draw(st.integers(0, len(whole) - 1))
    flip = data.draw(st.integers(1, 255))
    changed = whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :]
    assert refused_by_verify(changed)
    assert at >= seal or refused_by_read(changed)


@given(ledgers(), st.data())
def test_any_lost_or_added_byte_is_refused_by_both(
    ledger: tuple[Header, list[Event]], data: st.DataObject
) -> None:
    whole = file_of(ledger)
    seal = whole.rindex(b'{"t":"seal"')
    at = data.draw(st.integers(0, len(whole) - 1))
    lost = whole[:at] + whole[at + 1 :]
    assert refused_by_verify(lost)
    assert at >= seal or refused_by_read(lost)
    added = whole[:at] + data.draw(st.binary(min_size=1, max_size=1)) + whole[at:]
    assert refused_by_verify(added)
    assert at >= seal or refused_by_read(added)


@given(ledgers(), st.data())
def test_any_truncation_is_refused_by_both(
    ledger: tuple[Header, list[Event]], data: st.DataObject
) -> None:
    whole = file_of(ledger)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    assert refused_by_read(cut)
    assert refused_by_verify(cut)


@given(ledgers(), st.data())
def test_lines_swapped_lost_or_repeated_are_refused_by_both(
    ledger: tuple[Header, list[Event]], data: st.DataObject
) -> None:
    rows = file_of(ledger).splitlines(keepends=True)
    one = data.draw(st.integers(0, len(rows) - 1))
    two = data.draw(st.integers(0, len(rows) - 1))
    lost = b"".join(rows[:one] + rows[one + 1 :])
    again = b"".join([*rows[: one + 1], rows[one], *rows[one + 1 :]])
    for changed in (lost, again):
        assert refused_by_read(changed)
        assert refused_by_verify(changed)
    assume(one != two)
    rows[one], rows[two] = rows[two], rows[one]
    assert refused_by_read(b"".join(rows))
    assert refused_by_verify(b"".join(rows))


@given(ledgers(), ledgers(runs="q"), st.data())
def test_a_splice_of_two_ledgers_is_refused_by_both(
    ours: tuple[Header, list[Event]], theirs: tuple[Header, list[Event]], data: st.DataObject
) -> None:
    one = file_of(ours).splitlines(keepends=True)
    two = file_of(theirs).splitlines(keepends=True)
    cut = data.draw(st.integers(1, len(one) - 1))
    graft = data.draw(st.integers(1, len(two) - 1))
    for spliced in (one[:cut] + two[graft:], one[:cut] + two[1:graft] + one[cut:]):
        if spliced not in (one, two):
            assert refused_by_read(b"".join(spliced))
            assert refused_by_verify(b"".join(spliced))


@given(ledgers(), st.data())
def test_an_edit_with_a_new_digest_is_still_refused_by_verify(
    ledger: tuple[Header, list[Event]], data: st.DataObject
) -> None:
    """Whoever mends the digest has not mended the links."""
    header, events = ledger
    sealed = ledgerfile.read(file_of(ledger), name="L").events
    at = data.draw(st.integers(0, len(sealed) - 1))
    sealer = ledgerfile.Sealer(header)
    edited = [*sealed]
    edited[at] = msgspec.structs.replace(sealed[at], at="2031-01-01T00:00:00Z")
    lines = [sealer.begin(), *(sealer.add_line(encode(event), event) for event in edited)]
    followed = any(event.run == events[at].run for event in events[at + 1 :])
    # The last event of a run is covered by the seal's head alone, which was mended as well.
    assert refused_by_verify(b"".join([*lines, sealer.end()])) is followed


@given(ledgers(), NAMES, VALUES)
def test_fields_that_are_unknown_survive_sealing(
    ledger: tuple[Header, list[Event]], name: str, value: object
) -> None:
    known = set(Header.__struct_fields__) | {"t"}
    known.update(*(type(event).__struct_fields__ for event in ledger[1]))
    assume(name not in known)
    extra = b',"%s":%s}' % (name.encode(), bytes(raw(value)))
    rows = [encode(row)[:-1] + extra for row in (ledger[0], *ledger[1])]
    data = b"".join(ledgerfile.seal((b"\n".join(rows),), name="L"))
    assert ledgerfile.verify((data,), name="L").events == len(ledger[1])
    assert all(extra[:-1] in row for row in data.splitlines()[:-1])
    with pytest.raises(LedgerError, match="sealed already"):
        list(ledgerfile.seal((data,), name="L"))
