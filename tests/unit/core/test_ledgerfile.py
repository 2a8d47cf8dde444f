"""Reading, sealing and verifying a ledger, and what each damage is called."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import msgspec
import pytest

from backstop.core import ledgerfile
from backstop.core.events import EffectCommitted, Header, RunOpened, Seal
from backstop.core.ledgerfile import MAX_LINE
from backstop.core.sealing import encode, link
from backstop.errors import LedgerError
from tests.dsl import raw, scenario, sealed

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


@pytest.fixture
def good() -> bytes:
    return sealed(TWO_RUNS)


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


# Sealing a file


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
