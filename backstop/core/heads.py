"""Signed heads of ledgers, and the high-water mark that later heads are held to.

A seal shows that a file is as it was sealed; whoever edits it can seal it again. A head is what
a seal says in one line, signed, so that only the holder of a key can make another. Whoever has
the key, or an older file, is seen by the mark: the last head that was accepted, kept elsewhere.

Signatures are DSSE envelopes: the type of what is signed is signed too. Nothing here knows a
key, a clock or a file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from backstop.core.events import Seal
from backstop.core.lines import MAX_LINE, Lines
from backstop.core.sealing import encode, open_seal, too_long
from backstop.errors import LedgerError

HEAD_TYPE: Final = "application/vnd.backstop.ledger-head+json"
"""The payload type of heads, version 1. Another form of them would be another type."""

_MARK_FORMAT: Final = 1
_SHOWN: Final = 80
"""Characters that an error shows of what anybody may have written."""


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is signed: whose ledger, how long, which bytes, which ends of runs.

    `size` counts events; `digest` is the seal's, over every byte before it; `tip` is the digest
    of the last link of every run. `epoch` rises when trust in what was is broken; `at` is when
    it was signed (RFC 3339), for people: no clock decides which head is the later one.
    """

    agent: str
    size: int
    digest: str
    tip: str
    epoch: int
    at: str


class Mark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The highest head that was accepted, who signed it, and the last link of every run then."""

    format: int
    head: Head
    keyid: str
    heads: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A signature and what it is of. Nothing in it is to be believed before it is checked."""

    payload_type: str
    payload: bytes
    keyid: str
    signature: bytes


class _Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    keyid: str
    sig: str


class _Written(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An envelope as DSSE spells it."""

    payload: str
    payloadType: str  # noqa: N815  # the standard's own name
    signatures: tuple[_Signature]


_WRITTEN: Final = msgspec.json.Decoder(_Written)
_HEAD: Final = msgspec.json.Decoder(Head)
_MARK: Final = msgspec.json.Decoder(Mark)


def tip_of(heads: Mapping[str, str]) -> str:
    """One digest for the last links of all runs, in whatever order they are given."""
    return hashlib.sha256(msgspec.json.encode(sorted(heads.items()))).hexdigest()


def head_of(seal: Seal, *, agent: str, epoch: int, at: str) -> Head:
    """The head of the ledger of `agent` that ends in `seal`."""
    return Head(
        agent=agent,
        size=seal.events,
        digest=seal.digest,
        tip=tip_of(seal.heads),
        epoch=epoch,
        at=at,
    )


def head_bytes(head: Head) -> bytes:
    """The one spelling of a head: what an envelope carries."""
    return msgspec.json.encode(head)


def pre_authentication(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed (DSSE v1): lengths go first, so no two pairs share theirs."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def write_envelope(envelope: Envelope) -> str:
    """The text that a seal carries as its `signature`."""
    written = _Written(
        payload=base64.b64encode(envelope.payload).decode(),
        payloadType=envelope.payload_type,
        signatures=(
            _Signature(keyid=envelope.keyid, sig=base64.b64encode(envelope.signature).decode()),
        ),
    )
    return msgspec.json.encode(written).decode()


def open_envelope(text: str, *, name: str) -> Envelope:
    """Read a seal's `signature`. Raises `LedgerError` (head-format) for any other spelling."""
    try:
        written = _WRITTEN.decode(text)
        (only,) = written.signatures
        envelope = Envelope(
            payload_type=written.payloadType,
            payload=base64.b64decode(written.payload, validate=True),
            keyid=only.keyid,
            signature=base64.b64decode(only.sig, validate=True),
        )
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        envelope = None
    # Two spellings of one signature would be two files that both hold.
    if envelope is None or write_envelope(envelope) != text:
        raise _refused(
            name, "its signature is no DSSE envelope as Backstop writes it", slug="head-format"
        )
    return envelope


def check_type(envelope: Envelope, *, name: str) -> None:
    """Raises `LedgerError` (head-type) where something else than a head was signed."""
    if envelope.payload_type != HEAD_TYPE:
        raise _refused(
            name,
            f"its signature is of {envelope.payload_type[:_SHOWN]!r}, not of a ledger's head",
            slug="head-type",
        )


def open_head(payload: bytes, *, name: str) -> Head:
    """Read what was signed, once its signature holds. Raises `LedgerError` (head-format)."""
    try:
        head = _HEAD.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        head = None
    if head is None or head_bytes(head) != payload:
        raise _refused(name, "what was signed is no head as Backstop writes it", slug="head-format")
    return head


def check_head(head: Head, seal: Seal, *, agent: str, name: str) -> None:
    """Hold a head whose signature is good to the ledger that carries it.

    `seal` is that of a ledger of `agent` that was verified. Raises `LedgerError`: head-foreign
    for another agent's, head-mismatch for that of another file.
    """
    if head.agent != agent:
        raise _refused(
            name,
            f"its signature is of a ledger of {head.agent!r}, and this is one of {agent!r}",
            slug="head-foreign",
        )
    if head != head_of(seal, agent=agent, epoch=head.epoch, at=head.at):
        raise _refused(
            name,
            f"what was signed on {head.at} is another file, of {head.size:,} events; this one, of "
            f"{seal.events:,}, was sealed by somebody without the key",
            slug="head-mismatch",
        )


def check_mark(mark: Mark, head: Head, found: Collection[str], *, name: str) -> None:
    """Hold a good head to the mark: all that was seen once must still be there.

    `found` are those of the mark's links that are links of this ledger, which was verified: a
    link stands for the whole past of its run. Raises `LedgerError`: head-foreign; head-rollback
    where the ledger, or its epoch, is from before the mark; head-fork where it tells another
    past.
    """
    if head.agent != mark.head.agent:
        raise _refused(
            name,
            f"a ledger of {head.agent!r}, and the high-water mark is of {mark.head.agent!r}",
            slug="head-foreign",
        )
    seen = f"signed on {mark.head.at} by {mark.keyid}"
    if head.epoch < mark.head.epoch:
        raise _refused(
            name,
            f"signed in epoch {head.epoch}, before epoch {mark.head.epoch}, {seen}",
            slug="head-rollback",
        )
    lost = [run for run, link in mark.heads.items() if link not in found]
    if not lost:
        return
    if head.size < mark.head.size:
        raise _refused(
            name,
            f"{head.size:,} events, where {mark.head.size:,} were seen before, {seen}: this is an "
            "older ledger, or one that was cut",
            slug="head-rollback",
        )
    raise _refused(
        name,
        f"its past differs from the one seen before, {seen}: run {min(lost)!r}, for one, no "
        "longer holds what it held",
        slug="head-fork",
    )


def raised(mark: Mark | None, head: Head, *, heads: Mapping[str, str], keyid: str) -> Mark:
    """The mark after a head that was held to it: `mark` itself unless the head lies higher."""
    if mark is not None and (head.epoch, head.size) <= (mark.head.epoch, mark.head.size):
        return mark
    return Mark(format=_MARK_FORMAT, head=head, keyid=keyid, heads=dict(heads))


def write_mark(mark: Mark) -> bytes:
    """A mark as a file, one line."""
    return msgspec.json.encode(mark) + b"\n"


def open_mark(data: bytes, *, name: str) -> Mark:
    """Read a mark's file. Raises `LedgerError` (mark-damaged) for anything but a whole mark."""
    try:
        mark = _MARK.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        mark = None
    whole = mark is not None and (mark.format, mark.head.tip) == (_MARK_FORMAT, tip_of(mark.heads))
    if mark is None or not whole or write_mark(mark) != data:
        raise LedgerError(
            f"{name}: not a high-water mark as Backstop writes it. Restore it; a new one would "
            "not know what was seen before.",
            slug="mark-damaged",
        )
    return mark


def unsigned(name: str) -> LedgerError:
    """The error for a ledger without a signature, where one is asked for (ledger-unsigned)."""
    return _refused(
        name, "not signed, so anybody may have sealed it as it is", slug="ledger-unsigned"
    )


def signed(chunks: Iterable[bytes], signature: str, *, digest: str, name: str) -> Iterator[bytes]:
    """The sealed ledger of this `digest` with `signature` in its seal; all else keeps its bytes.

    Raises `LedgerError`: ledger-tampered if the file is not the one that was verified,
    ledger-line-too-long if there is no room for it.
    """
    lines = Lines(chunks, too_long=lambda number: too_long(name, number))
    found = hashlib.sha256()
    for block in lines:
        found.update(block)
        yield block
    seal = open_seal(lines.last)
    if seal is None or lines.rest or not found.hexdigest() == digest == seal.digest:
        raise LedgerError(
            f"{name}: the file changed while it was signed; nothing was. Sign it again.",
            slug="ledger-tampered",
        )
    line = encode(msgspec.structs.replace(seal, signature=signature))
    if len(line) > MAX_LINE:
        raise LedgerError(
            f"{name}: its seal would be longer than {MAX_LINE >> 20} MiB with a signature. Split "
            "the ledger by runs.",
            slug="ledger-line-too-long",
        )
    yield line + b"\n"


def _refused(name: str, what: str, *, slug: str) -> LedgerError:
    return LedgerError(
        f"{name}: {what}. Fetch the ledger again from where it is made, and find out who wrote "
        "this one.",
        slug=slug,
    )
