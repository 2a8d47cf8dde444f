"""The lines around a ledger's events: header and seal, and the links between events.

An event's link is the short digest of its line, newline left out; the next event of its run
carries it as `prev`. The seal holds the last link of every run and the digest of every byte
before the seal itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, Union, get_args

import msgspec

from backstop.core import canon
from backstop.core.events import (
    FORMAT,
    EffectCommitted,
    EffectResolved,
    Event,
    Header,
    Seal,
)
from backstop.core.history import EFFECT_KINDS
from backstop.core.lines import MAX_LINE, Lines
from backstop.core.strict import strict
from backstop.errors import LedgerError

# A decoder of one kind would take a line without any tag for it; one of two kinds does not.
_HEADER: Final = msgspec.json.Decoder(Header | Seal)
EVENT: Final = msgspec.json.Decoder(Event)


def _passed_over() -> list[type[msgspec.Struct]]:
    """Stand-ins for the events of which only the tag is looked at."""
    looked_at = {kind.__struct_config__.tag for kind in EFFECT_KINDS}
    tags = (kind.__struct_config__.tag for kind in get_args(Event))
    return [
        msgspec.defstruct(f"Other_{tag}", [], tag_field="t", tag=tag, gc=False)
        for tag in tags
        if tag not in looked_at
    ]


EFFECT: Final = msgspec.json.Decoder(Union[(*EFFECT_KINDS, *_passed_over())])
"""Decodes what `history.effect_rows` looks at, and steps over all else at half the cost."""

_SEAL: Final = msgspec.json.Decoder(Seal | Header)

_ENCODER: Final = msgspec.json.Encoder()


class _Kind(msgspec.Struct):
    """As much of any line as tells what it is."""

    t: str = ""
    format: int | None = None


_KIND: Final = msgspec.json.Decoder(_Kind)


def kind_of(line: bytes | memoryview) -> str:
    """The tag of a line; empty where it has none or is no JSON object."""
    try:
        return _KIND.decode(line).t
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def link(line: bytes) -> str:
    """The short digest of an event's line, given without its newline."""
    return hashlib.sha256(line).hexdigest()[:32]


def happened(event: Event) -> bool:
    """Whether this event says that an effect went out: the seal counts these as `effects`."""
    match event:
        case EffectCommitted():
            return True
        case EffectResolved(to="committed"):
            return True
        case _:
            return False


def encode(event: Header | Event | Seal) -> bytes:
    """One line without its newline; equal values give equal bytes.

    A payload's own line breaks become blanks: in JSON they can only stand between tokens.
    """
    line = _ENCODER.encode(event)
    if b"\n" in line or b"\r" in line:
        line = line.replace(b"\r", b" ").replace(b"\n", b" ")
    return line


def open_header(line: bytes | memoryview, *, name: str, expect_agent: str | None = None) -> Header:
    """Read a ledger's first line; `expect_agent` is whose ledger it must be, where that is known.

    Raises `LedgerError`: ledger-not-text, ledger-format, ledger-version, ledger-canon,
    ledger-foreign-agent.
    """
    if why := _converted(line):
        raise LedgerError(
            f"{name}, line 1: {why}: an editor or git rewrote the file, so no digest fits. Restore "
            "it, and keep it as it is: `*.jsonl -text` in .gitattributes.",
            slug="ledger-format",
        )
    try:
        header = _HEADER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
        raise _no_header(bytes(line[:MAX_LINE]), str(exc), name=name) from None
    if isinstance(header, Seal):
        raise _no_header(bytes(line[:MAX_LINE]), "a seal", name=name)
    if header.format != FORMAT:
        raise _other_format(header.format, name=name)
    if not 1 <= header.canon <= canon.CANON_VERSION:
        raise LedgerError(
            f"{name}, line 1: its keys follow canonical form {header.canon}; this Backstop knows "
            f"forms 1 to {canon.CANON_VERSION}. Use the Backstop that wrote it, or a newer one.",
            slug="ledger-canon",
        )
    if expect_agent is not None and header.agent != expect_agent:
        raise LedgerError(
            f"{name}, line 1: the ledger of agent {header.agent!r}, not of {expect_agent!r}. "
            "Point `ledger:` in backstop.yaml at the right file.",
            slug="ledger-foreign-agent",
        )
    return header


def open_seal(line: bytes | memoryview) -> Seal | None:
    """Read a ledger's last line; None if it is anything but a seal."""
    try:
        seal = _SEAL.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return seal if isinstance(seal, Seal) else None


def _converted(line: bytes | memoryview) -> str:
    """What a rewriting of the whole file left in its first line; empty if nothing."""
    head, end = bytes(line[:3]), bytes(line[-2:])
    if head == b"\xef\xbb\xbf":
        return "it begins with a byte order mark"
    return "it ends in CR LF" if head[:1] == b"{" and b"\r" in end else ""


def _other_format(found: int, *, name: str) -> LedgerError:
    return LedgerError(
        f"{name}, line 1: ledger format {found}; this Backstop reads format {FORMAT}. "
        "Use the Backstop that wrote it, or a newer one.",
        slug="ledger-version",
    )


def _no_header(line: bytes, why: str, *, name: str) -> LedgerError:
    try:
        kind = _KIND.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        kind = _Kind()
    if kind.t == "ledger" and kind.format not in {None, FORMAT}:
        return _other_format(kind.format or 0, name=name)
    if not looks_like_text(line):
        return not_text(name)
    return LedgerError(
        f"{name}, line 1: not a ledger's header ({why}). "
        'A ledger begins with a line whose "t" is "ledger".',
        slug="ledger-format",
    )


def looks_like_text(head: bytes) -> bool:
    """Whether bytes could be the beginning of JSON lines: UTF-8 without control characters."""
    if b"\0" in head:
        return False
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as exc:
        return exc.reason == "unexpected end of data"
    return all(char >= " " or char in "\t\r\n" for char in text)


def not_text(name: str) -> LedgerError:
    """The error for a file that is no text at all."""
    return LedgerError(
        f"{name}: not a text file, so no ledger. Ledgers are .jsonl, or .jsonl.zst.",
        slug="ledger-not-text",
    )


def too_long(name: str, number: int) -> LedgerError:
    """The error for a line that is longer than `MAX_LINE`."""
    return LedgerError(
        f"{name}, line {number}: longer than {MAX_LINE >> 20} MiB, so it was not read. "
        "No event is that long: the file is damaged, or not a ledger.",
        slug="ledger-line-too-long",
    )


def empty(name: str) -> LedgerError:
    """The error for a file without a byte in it."""
    return LedgerError(
        f"{name}: the file is empty; a ledger has at least a header and a seal. "
        "Restore it, or record or import one.",
        slug="ledger-empty",
    )


class Sealer:
    """Writes a ledger line by line: links each event to its run, and ends with the seal.

    Memory grows with the number of runs only.
    """

    def __init__(self, header: Header) -> None:
        self._header = header
        self._digest = hashlib.sha256()
        self._heads: dict[str, str] = {}
        self._events = 0
        self._effects = 0

    def begin(self, line: bytes | None = None) -> bytes:
        """The header's line; `line` keeps the bytes of one that was read."""
        return self._put(encode(self._header) if line is None else line)

    def add(self, event: Event) -> bytes:
        """The event's line, linked to the event before it in its run."""
        prev = self.head(event.run)
        if event.prev != prev:
            event = msgspec.structs.replace(event, prev=prev)
        return self.add_line(encode(event), event)

    def add_line(self, line: bytes, event: Event) -> bytes:
        """A line as it is, which must be linked already; `event` is what it says."""
        self._heads[event.run] = link(line)
        self._events += 1
        self._effects += happened(event)
        return self._put(line)

    def head(self, run: str) -> str:
        """The link that the run's next event carries; empty before its first."""
        return self._heads.get(run, "")

    def seal(self) -> Seal:
        """What the seal says after the lines so far."""
        return Seal(
            events=self._events,
            effects=self._effects,
            runs=len(self._heads),
            digest=self._digest.hexdigest(),
            heads=self._heads,
        )

    def end(self) -> bytes:
        """The seal line. Raises `LedgerError` (ledger-line-too-long) for far too many runs."""
        line = encode(self.seal())
        if len(line) > MAX_LINE:
            raise LedgerError(
                f"the seal of {len(self._heads)} runs would be longer than "
                f"{MAX_LINE >> 20} MiB. Split the ledger by runs.",
                slug="ledger-line-too-long",
            )
        return line + b"\n"

    def _put(self, line: bytes) -> bytes:
        line += b"\n"
        self._digest.update(line)
        return line


def seal_lines(header: Header, events: Iterable[Event]) -> Iterator[bytes]:
    """A whole ledger file, line by line: links are made, whatever `prev` said before.

    Every line goes through the strict parser. Raises `LedgerError` (ledger-format).
    """
    sealer = Sealer(header)
    yield sealer.begin()
    for number, event in enumerate(events, start=2):
        line = sealer.add(event)
        strictly(line, name=f"the new ledger of {header.agent}", number=number)
        yield line
    yield sealer.end()


def seal(chunks: Iterable[bytes], *, name: str) -> Iterator[bytes]:
    """Seal a file that has a header and events but no seal; streams, and keeps unknown fields.

    A line that is linked already keeps its bytes; one without a link gets it. Every line goes
    through the strict parser. Raises `LedgerError` (ledger-sealed, ledger-tampered for a
    wrong link, and whatever a header or an event can be refused for).
    """
    sealer: Sealer | None = None
    number = 0
    for line in each_line(chunks, name=name):
        number += 1
        strictly(line, name=name, number=number)
        if sealer is None:
            sealer = Sealer(open_header(line, name=name))
            yield sealer.begin(line)
            continue
        if kind_of(line) == "seal":
            raise LedgerError(
                f"{name}, line {number}: sealed already. Check it with `backstop ledger verify`.",
                slug="ledger-sealed",
            )
        event = open_event(line, name=name, number=number)
        linked = _linked(line, event, sealer.head(event.run), name=name, number=number)
        yield sealer.add_line(linked, event)
    if sealer is None:
        raise empty(name)
    yield sealer.end()


def each_line(chunks: Iterable[bytes], *, name: str) -> Iterator[bytes]:
    """The lines of a file without their newlines. Raises `LedgerError` (ledger-line-too-long)."""
    lines = Lines(chunks, too_long=lambda number: too_long(name, number))
    for block in lines:
        yield from block[:-1].split(b"\n")
    if lines.last:
        yield lines.last
    if lines.rest:
        yield lines.rest


def _linked(line: bytes, event: Event, prev: str, *, name: str, number: int) -> bytes:
    if event.prev == prev:
        return line
    if event.prev:
        raise LedgerError(
            f"{name}, line {number}: it is linked to another line than the one before it in run "
            f"{event.run!r}: lines were changed, lost or moved. Restore the file before sealing.",
            slug="ledger-tampered",
        )
    members = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    members["prev"] = msgspec.Raw(_ENCODER.encode(prev))
    return _ENCODER.encode(members)


def open_event(line: bytes, *, name: str, number: int) -> Event:
    """Read one event. Raises `LedgerError` (ledger-format), also for an unknown kind."""
    try:
        event: Event = EVENT.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
        raise LedgerError(
            f"{name}, line {number}: not an event that this Backstop knows ({exc}). "
            "Restore the line, or use the Backstop that wrote it.",
            slug="ledger-format",
        ) from None
    return event


def strictly(line: bytes, *, name: str, number: int) -> None:
    """Put a line through the strict parser. Raises `LedgerError` (ledger-format)."""
    try:
        strict(line)
    except canon.NotCanonical as exc:
        reason = str(exc).removeprefix("not JSON: ")
        raise LedgerError(
            f"{name}, line {number}: not strict JSON: {reason}. Restore the line.",
            slug="ledger-format",
        ) from None
