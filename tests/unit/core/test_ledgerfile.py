"""Reading, sealing and verifying a ledger, and what each damage is called."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import msgspec
import pytest

from backstop.core import ledgerfile
from backstop.core.events import EffectCommitted, RunOpened
from backstop.core.ledgerfile import MAX_LINE
from backstop.core.sealing import encode, link
from backstop.errors import LedgerError
from tests.dsl import raw, scenario, sealed
from tests.unit.core.pages import (
    READERS,
    TWO_RUNS,
    lines_of,
    read,
    refusal,
    reseal,
    stream,
    verify,
)


def test_a_ledger_comes_back_as_it_was_written(good: bytes) -> None:
    made = scenario(TWO_RUNS)
    ledger = ledgerfile.read(good, name="L")
    assert ledger.header == made.header
    assert [msgspec.structs.replace(e, prev="") for e in ledger.events] == made.events
    assert ledger.digest == hashlib.sha256(good[: good.rindex(b'{"t":"seal"')]).hexdigest()
    assert (ledger.seal.events, ledger.seal.effects, ledger.seal.runs) == (19, 2, 2)


def test_every_event_carries_the_link_of_the_one_before_it_in_its_run(good: bytes) -> None:
    rows = good.splitlines()
    events = ledgerfile.read(good, name="L").events
    last: dict[str, str] = {}
    for row, event in zip(rows[1:-1], events, strict=True):
        assert event.prev == last.get(event.run, "")
        last[event.run] = link(row)
    assert ledgerfile.read(good, name="L").seal.heads == last


def test_the_three_readers_agree(good: bytes) -> None:
    whole = ledgerfile.read(good, name="L")
    summary = ledgerfile.verify((good,), name="L")
    for size in (1, 7, 100, len(good)):
        pieces = [good[i : i + size] for i in range(0, len(good), size)]
        header, *batches, seal = ledgerfile.read_batches(pieces, name="L")
        assert header == whole.header
        assert [e for b in batches if isinstance(b, list) for e in b] == whole.events
        assert seal == whole.seal
        assert ledgerfile.verify(pieces, name="L") == summary
    assert (summary.events, summary.effects, summary.runs) == (19, 2, 2)
    assert (summary.open_runs, summary.in_doubt) == (0, 0)
    assert summary.digest == whole.digest
    assert (summary.first, summary.last) == (whole.events[0].at, whole.events[-1].at)


def test_what_is_in_doubt_or_open_is_counted() -> None:
    summary = ledgerfile.verify((sealed("run r\nstep s\ndoubt pay{to: a}"),), name="L")
    assert (summary.open_runs, summary.in_doubt) == (1, 1)


def test_a_ledger_without_events_is_a_ledger() -> None:
    data = sealed("agent desk")
    assert ledgerfile.read(data, name="L").events == []
    assert ledgerfile.verify((data,), name="L").events == 0
    assert len(list(ledgerfile.read_batches((data,), name="L"))) == 2


def test_line_breaks_inside_a_payload_do_not_break_its_line() -> None:
    made = scenario("run r\nstep s\ncommit pay{to: a}")
    *head, commit = made.events
    assert isinstance(commit, EffectCommitted)
    pretty = msgspec.structs.replace(commit, result=msgspec.Raw(b'{\r\n "text": "a\\nb"\n}'))
    data = b"".join(ledgerfile.seal_lines(made.header, [*head, pretty]))
    last = ledgerfile.read(data, name="L").events[-1]
    assert isinstance(last, EffectCommitted)
    assert msgspec.json.decode(last.result) == {"text": "a\nb"}
    ledgerfile.verify((data,), name="L")


def test_a_payload_that_is_not_strict_json_is_not_sealed() -> None:
    made = scenario("run r\nstep s\ncommit pay{to: a}")
    *head, commit = made.events
    assert isinstance(commit, EffectCommitted)
    twice = msgspec.structs.replace(commit, result=msgspec.Raw(b'{"a":1,"a":2}'))
    with pytest.raises(LedgerError, match="line 6: not strict JSON") as caught:
        list(ledgerfile.seal_lines(made.header, [*head, twice]))
    assert caught.value.slug == "ledger-format"


# Bad input, each with its name and its line


@READERS
def test_an_empty_file_is_called_empty(reader: Callable[[bytes], object]) -> None:
    assert refusal(reader, b"").slug == "ledger-empty"


@READERS
@pytest.mark.parametrize(
    "data", [b"\x7fELF\x02\x01\x01\0\0\0", b"\x89PNG\r\n\x1a\n" + bytes(40), b"\x1f\x8b\x08\0ab\n"]
)
def test_a_binary_file_is_no_ledger(reader: Callable[[bytes], object], data: bytes) -> None:
    fault = refusal(reader, data + b"\n" + data + b"\n")
    assert fault.slug == "ledger-not-text"


@READERS
@pytest.mark.parametrize(
    "data",
    [
        b"hello\nworld\n",
        b"{}\n{}\n",
        b'{"format":1,"agent":"d","canon":1}\n',
        b'[1,2]\n"x"\n',
        b"\n\n\n",
    ],
)
def test_any_other_text_is_no_ledger(reader: Callable[[bytes], object], data: bytes) -> None:
    fault = refusal(reader, data)
    assert fault.slug == "ledger-format"
    assert "line 1" in str(fault)


@READERS
def test_an_unknown_format_version_is_refused_even_if_its_header_looks_strange(
    good: bytes, reader: Callable[[bytes], object]
) -> None:
    later = reseal(good.replace(b'"format":1', b'"format":2', 1))
    assert refusal(reader, later).slug == "ledger-version"
    strange = reseal(good.replace(b'"format":1,"agent":"desk"', b'"format":3,"agent":["desk"]', 1))
    assert refusal(reader, strange).slug == "ledger-version"
    assert "format 3" in str(refusal(reader, strange))


@READERS
@pytest.mark.parametrize("version", [b"0", b"99"])
def test_keys_under_unknown_rules_are_refused(
    good: bytes, reader: Callable[[bytes], object], version: bytes
) -> None:
    other = reseal(good.replace(b'"canon":1', b'"canon":' + version, 1))
    assert refusal(reader, other).slug == "ledger-canon"


def test_the_ledger_of_another_agent_is_refused(good: bytes) -> None:
    calls: list[Callable[[], object]] = [
        lambda: ledgerfile.read(good, name="L", expect_agent="clerk"),
        lambda: ledgerfile.verify((good,), name="L", expect_agent="clerk"),
        lambda: list(ledgerfile.read_batches((good,), name="L", expect_agent="clerk")),
    ]
    for call in calls:
        with pytest.raises(LedgerError, match=r"'desk', not of 'clerk'") as caught:
            call()
        assert caught.value.slug == "ledger-foreign-agent"
    assert ledgerfile.read(good, name="L", expect_agent="desk").header.agent == "desk"


@READERS
def test_an_unknown_kind_of_event_is_refused_naming_the_line(
    good: bytes, reader: Callable[[bytes], object]
) -> None:
    rows = lines_of(good)
    rows.insert(5, b'{"t":"teleported","run":"r1","at":"2026-01-05T08:00:00Z"}\n')
    fault = refusal(reader, reseal(b"".join(rows)))
    if reader is stream:
        assert fault.slug == "ledger-format"
        assert "teleported" in str(fault)
    else:
        assert "line 6" in str(fault)


def test_an_unknown_kind_that_was_sealed_as_such_is_named() -> None:
    made = scenario("run r")
    sealer = ledgerfile.Sealer(made.header)
    opened = made.events[0]
    alien = b'{"t":"teleported","run":"r","at":"2026-01-05T08:00:00Z","prev":"%s"}' % (
        link(encode(opened)).encode()
    )
    body = sealer.begin() + sealer.add(opened) + sealer.add_line(alien, opened)
    fault = refusal(verify, body + sealer.end())
    assert fault.slug == "ledger-format"
    assert "line 3" in str(fault)
    assert "teleported" in str(fault)
    assert refusal(read, body + sealer.end()).slug == "ledger-format"


def test_the_strict_reader_refuses_what_parsers_disagree_about() -> None:
    for twice in (b'{"a":1,"a":2}', b'{"n":NaN}', b'{"s":"\\ud800"}', b"1e999"):
        made = scenario("run r\nstep s\ncommit pay{to: a}")
        sealer = ledgerfile.Sealer(made.header)
        body = sealer.begin() + b"".join(sealer.add(e) for e in made.events[:-1])
        odd = encode(msgspec.structs.replace(made.events[-1], prev=sealer.head("r")))
        odd = odd.replace(b'"result":null', b'"result":' + twice)
        fault = refusal(verify, body + sealer.add_line(odd, made.events[-1]) + sealer.end())
        assert fault.slug == "ledger-format"
        assert "line 6: not strict JSON" in str(fault)


# Lines too long, without taking them into memory


def endless(total: int, filler: bytes = b"a") -> Iterator[bytes]:
    chunk = filler * (1 << 20)
    yield encode(scenario("run r").header) + b'\n{"t":"run_opened","run":"'
    for _ in range(total >> 20):
        yield chunk


@pytest.mark.parametrize("filler", [b"a", b"\0"])
def test_a_line_of_ten_gigabytes_is_refused_after_sixteen_megabytes(filler: bytes) -> None:
    taken = 0

    def counted() -> Iterator[bytes]:
        nonlocal taken
        for chunk in endless(10 << 30, filler):
            taken += len(chunk)
            yield chunk

    for reader in (ledgerfile.verify, lambda c, name: list(ledgerfile.read_batches(c, name=name))):
        taken = 0
        with pytest.raises(LedgerError, match="line 2: longer than 16 MiB") as caught:
            reader(counted(), name="L")
        assert caught.value.slug == "ledger-line-too-long"
        assert taken < MAX_LINE + (2 << 20)


def test_a_long_line_among_others_is_refused_by_every_reader(good: bytes) -> None:
    rows = lines_of(good)
    rows.insert(2, b'"' + b"a" * (MAX_LINE + 1) + b'"\n')
    for reader in (read, verify, stream):
        fault = refusal(reader, reseal(b"".join(rows)))
        assert fault.slug == "ledger-line-too-long"
        assert "line 3" in str(fault)


def test_a_large_ledger_of_short_lines_is_read_whole() -> None:
    made = scenario("run r")
    big = [
        RunOpened(run=f"r{i}", at="2026-01-05T08:00:00Z", state=raw("x" * 90_000))
        for i in range(200)
    ]
    data = b"".join(ledgerfile.seal_lines(made.header, big))
    assert len(data) > MAX_LINE
    assert len(ledgerfile.read(data, name="L").events) == 200
    assert ledgerfile.verify((data,), name="L").events == 200
