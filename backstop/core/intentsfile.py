"""An intents file in bytes: a header line, intents and runs one a line, and a seal line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from backstop.core import canon
from backstop.core.events import Header
from backstop.core.intents import (
    INTENTS_FORMAT,
    Intent,
    IntentsHeader,
    IntentsSeal,
    RunReplayed,
)
from backstop.core.lines import MAX_LINE
from backstop.errors import BackstopError

_HEADER: Final = msgspec.json.Decoder(IntentsHeader | Header)
_ROW: Final = msgspec.json.Decoder(Intent | RunReplayed)
_SEAL: Final = msgspec.json.Decoder(IntentsSeal)
_ENCODER: Final = msgspec.json.Encoder()


class IntentsError(BackstopError):
    """An intents file cannot be trusted or read; the message names the line."""

    slug = "intents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intents:
    """What a version asked for: `intents` in the order of asking, and how far each run went.

    `digest` is SHA-256, hex, over every byte before the seal line.
    """

    header: IntentsHeader
    intents: list[Intent]
    runs: list[RunReplayed]
    digest: str


Row: TypeAlias = Intent | RunReplayed


def write(header: IntentsHeader, rows: Iterable[Row]) -> bytes:
    """A sealed intents file; equal values give equal bytes. Rows keep their order.

    Raises `IntentsError` (intents-format) for a payload that is not strict JSON.
    """
    lines = [_encoded(header)]
    intents = 0
    for number, row in enumerate(rows, start=2):
        line = _encoded(row)
        _strictly(line, name=f"the new intents of {header.agent}", number=number)
        lines.append(line)
        intents += isinstance(row, Intent)
    body = b"".join(lines)
    seal = IntentsSeal(
        intents=intents,
        runs=len(lines) - 1 - intents,
        digest=hashlib.sha256(body).hexdigest(),
    )
    return body + _encoded(seal)


def read(data: bytes, *, name: str, expect_agent: str | None = None) -> Intents:
    """Read a sealed intents file: digest and counts checked, payloads left raw.

    Raises `IntentsError` (intents-empty, intents-format, intents-foreign-agent,
    intents-unsealed, intents-tampered, intents-line-too-long); `expect_agent` is whose intents
    they must be.
    """
    if not data:
        raise IntentsError(
            f"{name}: the file is empty. `backstop replay --out` writes one.",
            slug="intents-empty",
        )
    view = memoryview(data)
    first = data.find(b"\n") + 1
    last = data.rfind(b"\n", 0, -1) + 1
    _check_lengths(data, name=name)
    header = _open(view[:first] if first else view, name=name, expect_agent=expect_agent)
    seal = _seal(view[last:], name=name)
    digest = hashlib.sha256(view[:last]).hexdigest()
    # The seal has one spelling, so that a change to the seal itself shows as well.
    if seal.digest != digest or _encoded(seal) != view[last:]:
        raise _tampered(name)
    rows = _rows(view[first:last], name=name)
    intents = [row for row in rows if isinstance(row, Intent)]
    runs = [row for row in rows if isinstance(row, RunReplayed)]
    if (seal.intents, seal.runs) != (len(intents), len(runs)):
        raise _tampered(name)
    return Intents(header=header, intents=intents, runs=runs, digest=digest)


def _encoded(value: IntentsHeader | Row | IntentsSeal) -> bytes:
    line = _ENCODER.encode(value)
    # In JSON a line break can only stand between tokens.
    return line.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


def _strictly(line: bytes, *, name: str, number: int) -> None:
    try:
        canon.parse(line)
    except canon.NotCanonical as exc:
        reason = str(exc).removeprefix("not JSON: ")
        raise IntentsError(
            f"{name}, line {number}: not strict JSON: {reason}. Replay again.",
            slug="intents-format",
        ) from None


def _check_lengths(data: bytes, *, name: str) -> None:
    if len(data) <= MAX_LINE:
        return
    for number, line in enumerate(data.split(b"\n"), start=1):
        if len(line) > MAX_LINE:
            raise IntentsError(
                f"{name}, line {number}: longer than {MAX_LINE >> 20} MiB, so it was not read. "
                "Replay again.",
                slug="intents-line-too-long",
            )


def _open(line: memoryview, *, name: str, expect_agent: str | None) -> IntentsHeader:
    try:
        header = _HEADER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
        raise IntentsError(
            f"{name}, line 1: not an intents file's header ({exc}). `backstop replay --out` "
            "writes one.",
            slug="intents-format",
        ) from None
    if isinstance(header, Header):
        raise IntentsError(
            f"{name}, line 1: a ledger, where an intents file is needed. "
            "`backstop diff` takes either as its candidate.",
            slug="intents-format",
        )
    if header.format != INTENTS_FORMAT or not 1 <= header.canon <= canon.CANON_VERSION:
        raise IntentsError(
            f"{name}, line 1: intents format {header.format} with canonical form {header.canon}; "
            f"this Backstop reads format {INTENTS_FORMAT} and forms 1 to {canon.CANON_VERSION}. "
            "Replay again.",
            slug="intents-format",
        )
    if expect_agent is not None and header.agent != expect_agent:
        raise IntentsError(
            f"{name}, line 1: the intents of agent {header.agent!r}, not of {expect_agent!r}. "
            "Replay the agent that you compare.",
            slug="intents-foreign-agent",
        )
    return header


def _seal(line: memoryview, *, name: str) -> IntentsSeal:
    try:
        return _SEAL.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise IntentsError(
            f"{name}: no seal at the end: the file was cut off, changed or never finished. "
            "Replay again.",
            slug="intents-unsealed",
        ) from None


def _rows(lines: memoryview, *, name: str) -> list[Row]:
    try:
        rows: list[Row] = _ROW.decode_lines(lines)
    except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
        raise IntentsError(
            f"{name}: a line is no intent that this Backstop knows ({exc}; `$[0]` is line 2). "
            "Replay again.",
            slug="intents-format",
        ) from None
    return rows


def _tampered(name: str) -> IntentsError:
    return IntentsError(
        f"{name}: not as it was sealed: lines were changed, moved, lost or added. Replay again.",
        slug="intents-tampered",
    )
