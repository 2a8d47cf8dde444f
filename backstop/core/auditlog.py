"""The long-term audit: a ledger's lines in one chain, and the columns that questions need.

An archive holds entries numbered from 1. An entry is a line of a ledger (its header whenever
that changed, and its events) or a note, `Sealed`, that says how far a verified ledger was taken
in. Its columns are worked out from the line; its hash covers them, the line, and the hash of the
entry before: so no entry can be lost, changed or moved without breaking the chain behind it.
Where the end of an archive was cut off at a note, only a `Tip` that was kept elsewhere tells.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

import msgspec

from backstop.core.checkpoint import NO_USAGE, Usage
from backstop.core.events import (
    AttemptEnded,
    CallAnswered,
    CallBlocked,
    EffectResolved,
    Event,
    Header,
    Recovered,
    RunClosed,
)
from backstop.core.meshlog import Ended, Rerun
from backstop.errors import LedgerError

HEADER: Final = "ledger"
"""The kind of an entry that holds a header."""

SEALED: Final = "sealed"
"""The kind of an entry that holds a note."""


class Sealed(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag=SEALED):
    """A note: a ledger of `agent` that was verified is in the archive, up to here.

    `events` counts all events of the archive so far, `tip` is the digest of the last links of
    all its runs (`heads.tip_of`); `digest` is the ledger's, and `signature` its seal's.
    """

    agent: str
    events: int
    tip: str
    digest: str
    signature: str | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line in an archive, without its newline. `prev` is the hash before it, empty at `seq` 1.

    `kind` is the line's tag; `day` the day of `at` in UTC, empty where that is no time; `how` the
    word that an event decides something with (what a call was answered, what became of a doubt).
    `spent` and `avoided` are the input tokens in the receipt of a recovery that came to its end.
    In the columns a line break is a blank.
    """

    seq: int
    prev: str
    hash: str
    day: str
    kind: str
    how: str
    run: str
    at: str
    tool: str
    key: str
    spent: int
    avoided: int
    line: bytes

    @property
    def is_event(self) -> bool:
        """Whether the line is an event, and no header or note."""
        return self.kind not in {HEADER, SEALED}


class Tip(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How far an archive reaches: the number and the hash of its last entry."""

    seq: int = 0
    hash: str = ""


ORIGIN: Final = Tip()
"""Where an archive begins: it holds nothing yet."""

_MANY: Final = 2**48
_NOTE: Final = msgspec.json.Decoder(Rerun | Ended)


def tip_at(entry: Entry) -> Tip:
    """How far an archive reaches that ends in `entry`."""
    return Tip(seq=entry.seq, hash=entry.hash)


def entry_of(said: Header | Event | Sealed, line: bytes, *, after: Tip) -> Entry:
    """The entry that follows `after` and holds `line`, which says `said`."""
    how, spent, avoided = _decided(said)
    run, at = getattr(said, "run", ""), getattr(said, "at", "")
    columns = Entry(
        seq=after.seq + 1,
        prev=after.hash,
        hash="",
        day=day_of(at),
        kind=str(said.__struct_config__.tag),
        how=_column(how),
        run=_column(run),
        at=_column(at),
        tool=_column(getattr(said, "tool", "")),
        key=_column(getattr(said, "key", "")),
        spent=spent,
        avoided=avoided,
        line=line,
    )
    return msgspec.structs.replace(columns, hash=hash_of(columns))


def hash_of(entry: Entry) -> str:
    """The hash that an entry must have: SHA-256, hex, over its fields, one a line, in this order.

    The order is `prev`, `seq`, `day`, `kind`, `how`, `run`, `at`, `tool`, `key`, `spent`,
    `avoided`, `line`; nothing of them holds a line break, so no two entries share the text.
    """
    columns = (
        f"{entry.prev}\n{entry.seq}\n{entry.day}\n{entry.kind}\n{entry.how}\n{entry.run}\n"
        f"{entry.at}\n{entry.tool}\n{entry.key}\n{entry.spent}\n{entry.avoided}\n"
    )
    return hashlib.sha256(columns.encode() + entry.line).hexdigest()


def day_of(at: str) -> str:
    """The day in UTC of an RFC 3339 time with an offset; empty for any other text."""
    try:
        instant = datetime.fromisoformat(at)
        return instant.astimezone(UTC).date().isoformat() if instant.tzinfo else ""
    except (ValueError, OverflowError):
        return ""


def unwritten(
    given: Sequence[Entry],
    tip: Tip,
    stored: Callable[[int, int], Iterable[Entry]],
    *,
    name: str,
) -> Sequence[Entry]:
    """Those of the entries `given` that an archive, which reaches to `tip`, does not hold yet.

    `stored` tells the entries that it holds, from one number to another, both included. Raises
    `LedgerError`: ``archive-gap`` where entries lie between, ``archive-fork`` where it holds
    others under their numbers or before them, ``archive-damaged`` for entries that are no chain.
    """
    if not given:
        return given
    for entry in given:
        if not _is_line(entry.line):
            raise damaged(name, entry.seq, "it is not one line of text")
        if entry.hash != hash_of(entry) or (entry.seq == 1) is not (entry.prev == ""):
            raise damaged(name, entry.seq, "its hash is not that of what it says")
    for before, entry in pairwise(given):
        if (entry.seq, entry.prev) != (before.seq + 1, before.hash):
            raise damaged(name, entry.seq, f"it does not follow entry {before.seq:,}")
    first, last = given[0], given[-1]
    if first.seq > tip.seq + 1:
        raise gap(name, tip.seq + 1, first.seq)
    known = [] if first.seq > tip.seq else list(stored(first.seq, min(last.seq, tip.seq)))
    told = given[: max(0, tip.seq + 1 - first.seq)]
    for ours, theirs in zip(known, told, strict=False):
        if ours != theirs:
            raise _fork(name, theirs.seq)
    if len(known) != len(told):
        raise gap(name, first.seq + len(known), first.seq + len(told))
    if not told and first.prev != tip.hash:
        raise _fork(name, tip.seq)
    return given[len(told) :]


def damaged(name: str, seq: int, what: str) -> LedgerError:
    """The error for an entry that is not what was archived (archive-damaged)."""
    return LedgerError(
        f"{name}, entry {seq:,}: {what}. Restore the archive, or make it anew in another place.",
        slug="archive-damaged",
    )


def gap(name: str, missing: int, found: int) -> LedgerError:
    """The error for entries that are not there (archive-gap)."""
    return LedgerError(
        f"{name}: entry {missing:,} is missing before entry {found:,}. Restore the archive, or "
        "make it anew in another place.",
        slug="archive-gap",
    )


def _fork(name: str, seq: int) -> LedgerError:
    return LedgerError(
        f"{name}, entry {seq:,}: the archive holds another one in its place. What is archived is "
        "never changed: find out which of the two is true, and archive that in another place.",
        slug="archive-fork",
    )


def _is_line(line: bytes) -> bool:
    try:
        return "\n" not in line.decode()
    except UnicodeDecodeError:
        return False


def _column(text: str) -> str:
    return text.replace("\n", " ") if "\n" in text else text


def _decided(said: Header | Event | Sealed) -> tuple[str, int, int]:
    """The deciding word of a line, and the tokens of its receipt."""
    match said:
        case CallAnswered(how=word) | EffectResolved(to=word) | RunClosed(status=word):
            return word, 0, 0
        case AttemptEnded(outcome=word) | CallBlocked(by=word):
            return word, 0, 0
        case Recovered():
            word, spent, avoided = _noted(said)
            return word, spent.input_tokens, avoided.input_tokens
        case _:
            return "", 0, 0


def _noted(event: Recovered) -> tuple[str, Usage, Usage]:
    """A recovery that was stopped is told again, with all its cost, by the one that takes it up."""
    try:
        note = _NOTE.decode(event.body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return "unreadable", NO_USAGE, NO_USAGE
    if isinstance(note, Rerun):
        return "rerun", NO_USAGE, NO_USAGE
    if note.stopped:
        return "stopped", NO_USAGE, NO_USAGE
    if not (_is_count(note.spent) and _is_count(note.avoided)):
        return "unreadable", NO_USAGE, NO_USAGE
    return "ended", note.spent, note.avoided


def _is_count(usage: Usage) -> bool:
    """Whether every database can hold it, and sums of it."""
    return 0 <= usage.input_tokens < _MANY
