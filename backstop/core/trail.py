"""What became of a ledger that is not as it was sealed: lost, moved, foreign or edited lines.

The trail keeps 32 bytes an event: its own link and the link it claims to follow. That is
enough to tell the cases apart once the whole file has been seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from backstop.core.events import Seal
from backstop.errors import LedgerError

_SIZE = 16
_FIRST_EVENT = 2  # line 1 is the header


def _packed(text: str) -> bytes:
    """A link as 16 bytes. What is no link becomes 16 bytes that are no line's link."""
    if not text:
        return bytes(_SIZE)
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    # Only the one spelling that links have: an upper-case digit is an edit.
    if len(raw) == _SIZE and raw.hex() == text:
        return raw
    other = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(other, digest_size=_SIZE).digest()


class Trail:
    """The links of all events seen, in the order of the file."""

    def __init__(self) -> None:
        self.heads: dict[str, str] = {}
        self.broken = 0
        """First line that could not be read, or 0."""
        self.unchained = 0
        """First line that does not follow the one before it in its run, or 0."""
        self.linked = False
        """Whether any event carried a link at all."""
        self._links = bytearray()
        self._prevs = bytearray()
        self._run_starts: dict[str, int] = {}
        self._latest = ""
        self._earlier = 0  # first line whose time lies before that of the line before it

    @property
    def events(self) -> int:
        """How many lines were seen, readable or not."""
        return len(self._links) // _SIZE

    def add(self, *, run: str, prev: str, own: str, at: str) -> None:
        """One event, in the order of the file; `own` is the link of its line."""
        number = self.events + _FIRST_EVENT
        before = self.heads.get(run, "")
        if prev != before and not self.unchained:
            self.unchained = number
        if not before:
            self._run_starts.setdefault(run, number)
        if at < self._latest and not self._earlier:
            self._earlier = number
        self._latest = at
        self.linked = self.linked or bool(prev)
        self.heads[run] = own
        self._links += bytes.fromhex(own)
        self._prevs += _packed(prev)

    def add_broken(self) -> None:
        """One line that could not be read."""
        self.broken = self.broken or self.events + _FIRST_EVENT
        self._links += b"\xff" * _SIZE
        self._prevs += bytes(_SIZE)

    def whole(self, seal: Seal, digest: str) -> bool:
        """Whether the file is what was sealed, link for link."""
        return (
            digest == seal.digest
            and not self.unchained
            and seal.events == self.events
            and seal.runs == len(self.heads)
            and seal.heads == self.heads
        )

    def explain(self, seal: Seal, *, name: str, sealed_so: bool) -> LedgerError:
        """Why `whole` is false: ledger-truncated, -spliced, -reordered or -tampered.

        `sealed_so` says that the digest over all lines holds, so the seal was made for it.
        """
        events = self.events
        strange, edited = self._strange_run(seal), self._dangling(seal)
        if sealed_so and not (self.unchained or self.broken or strange or edited):
            last = events + _FIRST_EVENT
            return _fault(name, last, "the seal was changed", slug="ledger-tampered")
        if events < seal.events:
            what = f"{seal.events - events} of {seal.events} events are missing"
            return _fault(name, self._gap(), what, slug="ledger-truncated")
        if events > seal.events:
            what = f"{events - seal.events} events more than the {seal.events} that were sealed"
            foreign = strange or self.unchained or edited or 1
            return _fault(name, foreign, what, slug="ledger-spliced")
        if strange:
            what = "it belongs to a run that the seal does not know, from another ledger"
            return _fault(name, strange, what, slug="ledger-spliced")
        if damaged := self.broken or edited:
            return _fault(name, damaged, "the line was changed", slug="ledger-tampered")
        if moved := self.unchained or self._earlier:
            what = "it does not stand where it was written: lines were moved"
            return _fault(name, moved, what, slug="ledger-reordered")
        what = "every event is whole, so the header was changed, or runs changed places"
        return _fault(name, 1, what, slug="ledger-tampered")

    def _pairs(self) -> Iterator[tuple[int, bytes, bytes]]:
        for index in range(self.events):
            cut = slice(index * _SIZE, (index + 1) * _SIZE)
            yield index + _FIRST_EVENT, bytes(self._links[cut]), bytes(self._prevs[cut])

    def _gap(self) -> int:
        """The first line that follows one which is not there; else the line after the last."""
        seen = {bytes(_SIZE)}
        for number, own, prev in self._pairs():
            if prev not in seen:
                return number
            seen.add(own)
        return self.events + _FIRST_EVENT

    def _strange_run(self, seal: Seal) -> int:
        starts = (line for run, line in self._run_starts.items() if run not in seal.heads)
        return min(starts, default=0)

    def _dangling(self, seal: Seal) -> int:
        """A line that neither an event nor the seal refers to: it is not as it was; or 0."""
        wanted = {_packed(head) for head in seal.heads.values()}
        wanted.update(prev for _, _, prev in self._pairs())
        alone = [number for number, own, _ in self._pairs() if own not in wanted]
        # Where the link itself was edited, the line before it is alone as well, and blameless.
        return self.unchained if self.unchained in alone else next(iter(alone), 0)


def _fault(name: str, line: int, what: str, *, slug: str) -> LedgerError:
    return LedgerError(
        f"{name}, line {line}: {what}. The file is not as it was sealed: restore it from version "
        "control, or pull or record it again.",
        slug=slug,
    )
