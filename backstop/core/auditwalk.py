"""What an archive has to be held to before anybody believes it: one pass over its entries.

Nothing that a store returns is taken for true: numbers, links, hashes and columns are worked out
again, an event must follow the one before it in its run, and a note must fit what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from backstop.core.auditlog import ORIGIN, Entry, Sealed, damaged, entry_of, gap, tip_at
from backstop.core.events import Event, Header
from backstop.core.heads import tip_of
from backstop.core.sealing import link
from backstop.errors import LedgerError

_FORMAT: Final = 1
_LINE: Final[msgspec.json.Decoder[Header | Event | Sealed]] = msgspec.json.Decoder(
    Header | Event | Sealed
)


class ArchiveMark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far an archive of `agent` was seen to reach: kept where the archive is not."""

    agent: str
    seq: int
    hash: str
    format: int = _FORMAT


_MARK: Final = msgspec.json.Decoder(ArchiveMark)


class Walk:
    """One pass over an archive that is called `name`. Memory grows with the number of runs.

    `mark` is how far it was seen to reach before. Afterwards `tip` is how far it does, `agent`
    whose ledger it holds, `header` its latest header's line, `heads` the last link of each run,
    `events` how many events there are, and `sealed` the note that it ends in, if it does.
    """

    def __init__(self, name: str, *, mark: ArchiveMark | None = None) -> None:
        self.tip = ORIGIN
        self.agent = ""
        self.header = b""
        self.heads: dict[str, str] = {}
        self.events = 0
        self.sealed: Sealed | None = None
        self._name = name
        self._mark = mark

    def each(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The entries, each once it is known to hold, and to the end. Raises as `take` does."""
        for entry in entries:
            self.take(entry)
            yield entry

    def take(self, entry: Entry) -> None:
        """The next entry, as it was read.

        Raises `LedgerError`: ``archive-gap``, ``archive-damaged``, ``archive-foreign`` where it
        is of another agent's ledger, ``archive-rollback`` where it is not the one that was seen.
        """
        if entry.seq > self.tip.seq + 1:
            raise gap(self._name, self.tip.seq + 1, entry.seq)
        if entry.seq != self.tip.seq + 1:
            raise damaged(self._name, entry.seq, "it stands where another was: entries moved")
        said = _said(entry, self._name)
        if entry != entry_of(said, entry.line, after=self.tip):
            raise damaged(self._name, entry.seq, "it is not as it was archived")
        if self._mark and entry.seq == self._mark.seq and entry.hash != self._mark.hash:
            raise _rollback(self._name, f"entry {entry.seq:,} is another than the one seen before")
        self.sealed = None
        match said:
            case Header(agent=agent):
                self._of(agent, entry)
                self.header = entry.line
            case Sealed():
                self._noted(said, entry)
            case _:
                self._followed(said, entry)
        self.tip = tip_at(entry)

    def close(self) -> None:
        """The archive has come to its end, and must be whole.

        Raises `LedgerError`: ``archive-empty``; ``archive-unsealed`` where it does not end in a
        note; ``archive-rollback`` where it reaches less far than was seen before.
        """
        self.reached()
        if self.tip == ORIGIN:
            raise _empty(self._name)
        if self.sealed is None:
            raise _unsealed(self._name, self.tip.seq)

    def reached(self) -> None:
        """Raises `LedgerError` (``archive-rollback``) where less is there than was seen before."""
        if self._mark is not None and self._mark.seq > self.tip.seq:
            raise _shorter(self._name, self._mark)

    def mark(self) -> ArchiveMark:
        """How far it reaches, to be kept elsewhere."""
        return ArchiveMark(agent=self.agent, seq=self.tip.seq, hash=self.tip.hash)

    def _of(self, agent: str, entry: Entry) -> None:
        if self.tip != ORIGIN and agent != self.agent:
            raise LedgerError(
                f"{self._name}, entry {entry.seq:,}: of a ledger of {agent!r}, in an archive of "
                f"{self.agent!r}. An archive holds the ledger of one agent.",
                slug="archive-foreign",
            )
        if self._mark is not None and agent != self._mark.agent:
            raise _rollback(
                self._name, f"it is of {agent!r}, and {self._mark.agent!r} was seen before"
            )
        self.agent = agent

    def _followed(self, event: Event, entry: Entry) -> None:
        if not self.header:
            raise damaged(self._name, entry.seq, "no header stands before it")
        if event.prev != self.heads.get(event.run, ""):
            raise damaged(
                self._name, entry.seq, f"it does not follow the event before it in {event.run!r}"
            )
        self.heads[event.run] = link(entry.line)
        self.events += 1

    def _noted(self, note: Sealed, entry: Entry) -> None:
        self._of(note.agent, entry)
        if (note.events, note.tip) != (self.events, tip_of(self.heads)):
            raise damaged(
                self._name,
                entry.seq,
                f"a ledger of {note.events:,} events was taken in, and it is not what stands here",
            )
        self.sealed = note


def ended(last: Entry | None, *, events: int, name: str) -> Sealed:
    """The note that an archive ends in: `last` is its last entry, `events` how many it holds.

    For an archive that was checked where it lies. Raises `LedgerError`: ``archive-empty``,
    ``archive-unsealed``, ``archive-damaged``.
    """
    if last is None:
        raise _empty(name)
    note = _said(last, name)
    if not isinstance(note, Sealed):
        raise _unsealed(name, last.seq)
    if note.events != events:
        raise damaged(name, last.seq, f"it is a note of {note.events:,} events, not of {events:,}")
    return note


def hold_to_mark(seen: Entry | None, mark: ArchiveMark, *, name: str) -> None:
    """Hold an archive to its mark: `seen` is its entry of that number, if it has one.

    Raises `LedgerError` (``archive-rollback``).
    """
    if seen is None or seen.seq != mark.seq:
        raise _shorter(name, mark)
    if seen.hash != mark.hash:
        raise _rollback(name, f"entry {seen.seq:,} is another than the one seen before")


def note_of(walk: Walk, *, digest: str, signature: str | None) -> Sealed:
    """The note that a ledger of this digest is in the archive, as far as `walk` has come."""
    return Sealed(
        agent=walk.agent,
        events=walk.events,
        tip=tip_of(walk.heads),
        digest=digest,
        signature=signature,
    )


def unarchived(
    lines: Iterable[tuple[bytes, Event]], heads: Mapping[str, str]
) -> Iterator[tuple[bytes, Event]]:
    """Those events of a ledger that are behind what is archived of their runs.

    `heads` are the last links that are archived. Every one of them must be a link of the ledger,
    which `ledgerverify.verify` finds out: it would leave out the whole run otherwise.
    """
    behind = dict.fromkeys(heads, False)
    for line, event in lines:
        if behind.get(event.run, True):
            yield line, event
        elif link(line) == heads[event.run]:
            behind[event.run] = True


def write_mark(mark: ArchiveMark) -> bytes:
    """A mark as a file, one line."""
    return msgspec.json.encode(mark) + b"\n"


def open_mark(data: bytes, *, name: str) -> ArchiveMark:
    """Read a mark's file. Raises `LedgerError` (mark-damaged) for anything but a whole mark."""
    try:
        mark = _MARK.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        mark = None
    if mark is None or mark.format != _FORMAT or write_mark(mark) != data:
        raise LedgerError(
            f"{name}: not a mark of an archive as Backstop writes it. Restore it; a new one "
            "would not know what was seen before.",
            slug="mark-damaged",
        )
    return mark


def _said(entry: Entry, name: str) -> Header | Event | Sealed:
    try:
        return _LINE.decode(entry.line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise damaged(
            name, entry.seq, f"it is nothing that this Backstop archives ({error})"
        ) from None


def _empty(name: str) -> LedgerError:
    return LedgerError(
        f"{name}: nothing is archived here. Check the place, or fill it with `backstop ledger "
        "archive`.",
        slug="archive-empty",
    )


def _unsealed(name: str, seq: int) -> LedgerError:
    return LedgerError(
        f"{name}: it ends at entry {seq:,}, in the middle of a ledger: the archiving was cut off, "
        "or its end was. Archive the ledger once more.",
        slug="archive-unsealed",
    )


def _shorter(name: str, mark: ArchiveMark) -> LedgerError:
    return _rollback(name, f"{mark.seq:,} entries were seen before, and it ends sooner")


def _rollback(name: str, what: str) -> LedgerError:
    return LedgerError(
        f"{name}: {what}. Restore the archive, and find out who changed it.",
        slug="archive-rollback",
    )
