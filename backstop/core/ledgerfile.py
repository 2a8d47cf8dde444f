"""A ledger file in bytes, read at once, in batches, or strictly; and written.

A file is a header line, one event a line, and a seal line. `read` and `read_batches` trust
what the seal's digest covers and leave payloads raw; `verify` trusts nothing. Nothing here
opens a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from backstop.core.events import (
    CallAnswered,
    CallBlocked,
    EffectClaimed,
    EffectCommitted,
    EffectResolved,
    Event,
    Header,
    Seal,
)
from backstop.core.history import History, effect_rows
from backstop.core.ledgerverify import Summary, cut_off, verify
from backstop.core.lines import MAX_LINE, Lines
from backstop.core.sealing import (
    EFFECT,
    EVENT,
    Sealer,
    empty,
    encode,
    open_header,
    open_seal,
    seal,
    seal_lines,
    too_long,
)
from backstop.errors import LedgerError

__all__ = [
    "MAX_LINE",
    "Ledger",
    "Sealer",
    "Summary",
    "encode",
    "read",
    "read_batches",
    "seal",
    "seal_lines",
    "verify",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A whole ledger in memory. `digest` is SHA-256, hex, over every byte before the seal line."""

    header: Header
    events: list[Event]
    seal: Seal
    digest: str

    @property
    def history(self) -> History:
        """The effects that the events tell of, worked out anew at each call."""
        return effect_rows([self.events])


def read(
    data: bytes, *, name: str, expect_agent: str | None = None, effects_only: bool = False
) -> Ledger:
    """Read a sealed ledger at once: digest and counts checked, payloads left raw.

    With `effects_only`, events that say nothing about effects are counted and stepped over:
    what is in their place fits `history.effect_rows` and nothing else. The links between
    events, the heads and what the events say are `verify`'s to check. Raises `LedgerError`
    naming the line; `expect_agent` is whose ledger it must be.
    """
    view = memoryview(data)
    first = data.find(b"\n") + 1
    last = data.rfind(b"\n", 0, -1) + 1
    digest = hashlib.sha256(view[:last]).hexdigest()
    seal = open_seal(view[last:])
    try:
        if seal and seal.digest == digest and data.endswith(b"\n") and not _too_long(data):
            header = open_header(view[:first], name=name, expect_agent=expect_agent)
            decoder = EFFECT if effects_only else EVENT
            events: list[Event] = decoder.decode_lines(view[first:last])
            if len(events) == seal.events:
                return Ledger(header=header, events=events, seal=seal, digest=digest)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass  # the strict reader says exactly what is wrong, and where
    raise _why_not(data, name=name, expect_agent=expect_agent)


def _too_long(data: bytes) -> bool:
    return len(data) > MAX_LINE and max(map(len, data.split(b"\n"))) > MAX_LINE


def _why_not(data: bytes, *, name: str, expect_agent: str | None) -> LedgerError:
    fault = LedgerError(
        f"{name}: the quick reader refuses what the strict one accepts, so neither is trusted. "
        "Please report this file.",
        slug="ledger-format",
    )
    try:
        verify((data,), name=name, expect_agent=expect_agent)
    except LedgerError as exc:
        fault = exc
    return fault


Batch: TypeAlias = Header | list[Event] | Seal


def read_batches(
    chunks: Iterable[bytes],
    *,
    name: str,
    expect_agent: str | None = None,
    effects_only: bool = False,
) -> Iterator[Batch]:
    """Read a sealed ledger as a stream: the header, lists of events, and last the seal.

    Digest and counts can be checked at the end only: take nothing for true before the seal
    has come. Memory is bounded by the chunks' size and `MAX_LINE`; payloads that are kept keep
    their chunk. With `effects_only`, events are as for `read`, and the payloads of calls are
    their own. Raises `LedgerError`.
    """
    lines = Lines(chunks, too_long=lambda number: too_long(name, number))
    digest = hashlib.sha256()
    decoder = EFFECT if effects_only else EVENT
    alike: dict[str, str] = {}
    begun = False
    count = 0
    for block in lines:
        digest.update(block)
        start = 0
        if not begun:
            start = block.find(b"\n") + 1
            yield open_header(block[:start], name=name, expect_agent=expect_agent)
            begun = True
        events = _decoded(decoder, block, start, name=name, before=count + 1)
        if effects_only:
            events = [_detached(e, alike) if isinstance(e, _CALLS) else e for e in events]
        count += len(events)
        if events:
            yield events
    if not begun and (only := lines.last or lines.rest):
        open_header(only, name=name, expect_agent=expect_agent)
    yield _checked_seal(lines, digest.hexdigest(), count, name=name)


_CALLS: Final = (EffectClaimed, EffectCommitted, EffectResolved, CallAnswered, CallBlocked)
"""The events whose payloads outlive the chunk that they came in."""


_ALIKE: Final = frozenset({"agent", "decl", "owner", "run", "tool", "v"})
"""Members whose text many calls share: one copy is enough for all of them."""


def _detached(event: Event, alike: dict[str, str]) -> Event:
    own: dict[str, object] = {}
    for name in event.__struct_fields__:
        match getattr(event, name):
            case msgspec.Raw() as payload:
                own[name] = payload.copy()
            case str(text) if name in _ALIKE:
                own[name] = alike.setdefault(text, text)
            case _:
                pass
    return msgspec.structs.replace(event, **own)


def _decoded(
    decoder: msgspec.json.Decoder[Event], block: bytes, start: int, *, name: str, before: int
) -> list[Event]:
    try:
        events: list[Event] = decoder.decode_lines(memoryview(block)[start:])
    except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
        raise LedgerError(
            f"{name}, after line {before}: not all lines are events that this Backstop knows "
            f"({exc}). `backstop ledger verify` names the line.",
            slug="ledger-format",
        ) from None
    return events


def _checked_seal(lines: Lines, digest: str, count: int, *, name: str) -> Seal:
    if not lines.last and not lines.rest:
        raise empty(name)
    if lines.rest:
        raise cut_off(name, count + 1)
    seal = open_seal(lines.last)
    if seal is None:
        raise LedgerError(
            f"{name}, line {count + 2}: no seal at the end: the file was cut off or never sealed. "
            "`backstop ledger verify` says which.",
            slug="ledger-unsealed",
        )
    if seal.digest != digest or seal.events != count:
        raise LedgerError(
            f"{name}, lines 1 to {count + 1}: not as they were sealed. "
            "`backstop ledger verify` names the line.",
            slug="ledger-tampered",
        )
    return seal
