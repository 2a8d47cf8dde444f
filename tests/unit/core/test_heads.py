"""Heads, envelopes and marks: what is signed, and what a later head is held to."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from backstop.core import ledgerfile
from backstop.core.events import Seal
from backstop.core.heads import (
    HEAD_TYPE,
    Envelope,
    Head,
    Mark,
    check_head,
    check_mark,
    check_type,
    head_bytes,
    head_of,
    open_envelope,
    open_head,
    open_mark,
    pre_authentication,
    raised,
    signed,
    tip_of,
    unsigned,
    write_envelope,
    write_mark,
)
from backstop.errors import LedgerError
from tests.dsl import sealed

HEADS = {"r1": "a" * 32, "r2": "b" * 32}
SEAL = Seal(events=9, effects=2, runs=2, digest="d" * 64, heads=HEADS)
HEAD = head_of(SEAL, agent="desk", epoch=1, at="2026-11-30T20:00:00+00:00")
ENVELOPE = Envelope(
    payload_type=HEAD_TYPE, payload=head_bytes(HEAD), keyid="k1", signature=b"s" * 64
)
MARK = raised(None, HEAD, heads=HEADS, keyid="k1")
ALL = frozenset(HEADS.values())


def slug_of(action: Callable[[], object]) -> str:
    with pytest.raises(LedgerError) as caught:
        action()
    assert str(caught.value).startswith("L.jsonl")
    return caught.value.slug


def head(**changed: Any) -> Head:
    return msgspec.structs.replace(HEAD, **changed)


def test_what_is_signed_is_what_the_standard_says() -> None:
    """The example of the DSSE specification, v1."""
    assert pre_authentication("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_no_two_pairs_of_type_and_payload_are_signed_alike() -> None:
    assert pre_authentication("a", b"b c") != pre_authentication("a b", b"c")
    assert pre_authentication("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "


def test_a_tip_does_not_depend_on_the_order_of_runs() -> None:
    assert tip_of(HEADS) == tip_of(dict(reversed(HEADS.items())))
    assert tip_of(HEADS) != tip_of({"r1": "b" * 32, "r2": "a" * 32})


def test_an_envelope_says_again_what_was_put_in() -> None:
    assert open_envelope(write_envelope(ENVELOPE), name="L.jsonl") == ENVELOPE
    assert open_head(ENVELOPE.payload, name="L.jsonl") == HEAD
    check_type(ENVELOPE, name="L.jsonl")


def spelled(**changed: Any) -> str:
    members = msgspec.json.decode(write_envelope(ENVELOPE)) | changed
    return msgspec.json.encode(members).decode()


def test_the_spelling_that_the_next_test_breaks_is_accepted() -> None:
    assert open_envelope(spelled(), name="L.jsonl") == ENVELOPE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yes",
        "{}",
        spelled() + " ",
        spelled(extra=1),
        spelled(payload="!"),
        spelled(payload="é"),
        spelled(payload=base64.urlsafe_b64encode(b"\xff\xff").decode()),
        spelled(payload="QR=="),
        spelled(signatures=[]),
        spelled(signatures=[{"keyid": "k1", "sig": ""}, {"keyid": "k2", "sig": ""}]),
        spelled(signatures=[{"keyid": "k1", "sig": "QQ"}]),
    ],
)
def test_there_is_one_spelling_of_an_envelope(text: str) -> None:
    assert slug_of(lambda: open_envelope(text, name="L.jsonl")) == "head-format"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff",
        b"[]",
        head_bytes(HEAD) + b" ",
        head_bytes(HEAD)[:-1] + b',"more":1}',
        msgspec.json.encode({"agent": "desk", "size": 9}),
        head_bytes(HEAD).replace(b'"size":9', b'"size":"9"'),
    ],
)
def test_there_is_one_spelling_of_a_head(payload: bytes) -> None:
    assert slug_of(lambda: open_head(payload, name="L.jsonl")) == "head-format"


def test_a_signature_of_something_else_is_not_one_of_a_head() -> None:
    other = Envelope(payload_type="text/plain", payload=b"", keyid="k1", signature=b"")
    assert slug_of(lambda: check_type(other, name="L.jsonl")) == "head-type"


def test_a_head_is_held_to_the_ledger_that_carries_it() -> None:
    check_head(HEAD, SEAL, agent="desk", name="L.jsonl")
    check_head(head(epoch=7, at="never"), SEAL, agent="desk", name="L.jsonl")


@pytest.mark.parametrize("changed", [{"size": 8}, {"digest": "e" * 64}, {"tip": "f" * 64}], ids=str)
def test_a_head_of_another_file_is_refused(changed: dict[str, Any]) -> None:
    found = slug_of(lambda: check_head(head(**changed), SEAL, agent="desk", name="L.jsonl"))
    assert found == "head-mismatch"


def test_a_head_of_another_agent_is_refused() -> None:
    found = slug_of(lambda: check_head(HEAD, SEAL, agent="till", name="L.jsonl"))
    assert found == "head-foreign"


def test_a_head_that_holds_all_that_was_seen_is_accepted() -> None:
    check_mark(MARK, HEAD, ALL, name="L.jsonl")
    check_mark(MARK, head(size=12, epoch=2), ALL, name="L.jsonl")


@pytest.mark.parametrize(
    ("changed", "found", "slug"),
    [
        ({"agent": "till"}, ALL, "head-foreign"),
        ({"epoch": 0}, ALL, "head-rollback"),
        ({"epoch": 0, "size": 99}, ALL, "head-rollback"),
        ({"size": 8}, {"a" * 32}, "head-rollback"),
        ({}, {"a" * 32}, "head-fork"),
        ({"size": 12}, frozenset[str](), "head-fork"),
        ({"size": 12, "epoch": 2}, {"b" * 32}, "head-fork"),
    ],
)
def test_a_head_that_lost_what_was_seen_is_refused(
    changed: dict[str, Any], found: frozenset[str], slug: str
) -> None:
    assert slug_of(lambda: check_mark(MARK, head(**changed), found, name="L.jsonl")) == slug


def test_a_mark_is_only_ever_raised() -> None:
    for lower in (HEAD, head(size=8), head(epoch=0, size=99), head(at="later")):
        assert raised(MARK, lower, heads={}, keyid="k2") is MARK
    for higher in (head(size=10), head(epoch=2)):
        assert raised(MARK, higher, heads=HEADS, keyid="k2") == Mark(
            format=1, head=higher, keyid="k2", heads=HEADS
        )


def test_a_mark_says_again_what_was_put_in() -> None:
    assert open_mark(write_mark(MARK), name="L.jsonl") == MARK


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\n",
        write_mark(MARK)[:-1],
        write_mark(MARK)[:40],
        write_mark(MARK).replace(b'"format":1', b'"format":2'),
        write_mark(MARK).replace(b'"r2":"b', b'"r2":"c'),
        write_mark(MARK).replace(b'"keyid"', b'"more":1,"keyid"'),
        write_mark(MARK).replace(b":", b": "),
    ],
)
def test_a_mark_that_is_not_whole_is_refused(data: bytes) -> None:
    assert slug_of(lambda: open_mark(data, name="L.jsonl")) == "mark-damaged"


LEDGER = sealed("run r1\nstep s1\ncommit pay{ref: 1} -> {ok: true}\nadvance\nclose complete\n")


def test_signing_keeps_every_byte_before_the_seal() -> None:
    digest = ledgerfile.verify((LEDGER,), name="L.jsonl").digest
    made = b"".join(signed((LEDGER,), "by hand", digest=digest, name="L.jsonl"))
    assert made.splitlines()[:-1] == LEDGER.splitlines()[:-1]
    found = ledgerfile.verify((made,), name="L.jsonl")
    assert (found.digest, found.seal.signature) == (digest, "by hand")
    again = b"".join(signed((made,), "by another", digest=digest, name="L.jsonl"))
    assert ledgerfile.verify((again,), name="L.jsonl").seal.signature == "by another"


@pytest.mark.parametrize(
    "swapped",
    [
        LEDGER.replace(b"pay", b"buy"),
        sealed("run r1\nclose complete\n"),
        LEDGER + b"x",
        LEDGER[:-1],
        LEDGER.rsplit(b"\n", 2)[0] + b"\n",
        LEDGER.replace(b'"digest":"', b'"digest":"0'),
        b"",
    ],
)
def test_a_file_that_changed_since_it_was_verified_is_not_signed(swapped: bytes) -> None:
    digest = ledgerfile.verify((LEDGER,), name="L.jsonl").digest
    found = slug_of(lambda: list(signed((swapped,), "s", digest=digest, name="L.jsonl")))
    assert found == "ledger-tampered"


def test_an_unsigned_ledger_has_an_error_of_its_own() -> None:
    error = unsigned("L.jsonl")
    assert (error.slug, "not signed" in str(error)) == ("ledger-unsigned", True)


def test_a_seal_without_room_for_a_signature_is_not_signed() -> None:
    digest = ledgerfile.verify((LEDGER,), name="L.jsonl").digest
    long = "s" * ledgerfile.MAX_LINE
    found = slug_of(lambda: list(signed((LEDGER,), long, digest=digest, name="L.jsonl")))
    assert found == "ledger-line-too-long"


def test_links_that_are_asked_for_are_found_if_they_are_there() -> None:
    last = next(iter(ledgerfile.verify((LEDGER,), name="L.jsonl").seal.heads.values()))
    asked = ledgerfile.verify((LEDGER,), name="L.jsonl", marked={last, "0" * 32})
    assert asked.marked == {last}
    assert ledgerfile.verify((LEDGER,), name="L.jsonl").marked == frozenset()
