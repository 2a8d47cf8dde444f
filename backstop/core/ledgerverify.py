"""The strict reader of a ledger: trusts nothing, and streams.

Each line goes through the strict parser. What the lines say must hang together: links, heads,
counts and digest as the seal says; declarations that rows name; keys and fingerprints, which are
worked out again; the order of runs, steps and attempts; the lifecycle of every claim; and no
effect skipped in silence. A file that is not as
it was sealed is reported as such before anything that its lines say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import msgspec

from backstop.core.audit import Audit, Finding
from backstop.core.events import (
    CallBlocked,
    EffectClaimed,
    EffectFenced,
    Event,
    Header,
    Seal,
    ToolRead,
)
from backstop.core.keycheck import Keys, false_declaration
from backstop.core.lifecycle import Lives
from backstop.core.lines import Lines
from backstop.core.order import Order
from backstop.core.sealing import (
    empty,
    happened,
    kind_of,
    link,
    looks_like_text,
    open_event,
    open_header,
    open_seal,
    strictly,
    too_long,
)
from backstop.core.trail import Trail
from backstop.errors import LedgerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a verified ledger holds. `first` and `last` are the times of its events.

    `out_twice` are effects that happened under a claim which another had superseded. `marked`
    are those of the links that were asked for which are links of this ledger.
    """

    header: Header
    events: int
    effects: int
    runs: int
    open_runs: int
    in_doubt: int
    out_twice: int
    digest: str
    first: str
    last: str
    seal: Seal
    marked: frozenset[str]


class SilentSkip(LedgerError):
    """A run says that it is done over effects that are not; `findings` lists them all."""

    slug = "silent-skip"

    def __init__(self, name: str, findings: list[Finding]) -> None:
        self.findings = tuple(findings)
        first = findings[0]
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        super().__init__(
            f"{name}, line {first.line}: {first}, yet the run moved on{more}. Find out whether it "
            "happened, resolve it in the store, and pull the ledger again."
        )


def verify(
    chunks: Iterable[bytes],
    *,
    name: str,
    expect_agent: str | None = None,
    marked: Collection[str] = frozenset(),
) -> Summary:
    """Check a whole sealed ledger strictly, as a stream. Raises `LedgerError` naming the line.

    `marked` are links that are looked for. Memory grows by about 32 bytes an event and 200 bytes
    an effect.
    """
    lines = Lines(chunks, too_long=lambda number: too_long(name, number))
    digest = hashlib.sha256()
    walk: _Walk | None = None
    for block in lines:
        digest.update(block)
        rows = block[:-1].split(b"\n")
        if walk is None:
            header = _header(rows.pop(0), name=name, expect_agent=expect_agent)
            walk = _Walk(name, header, marked=marked)
        for row in rows:
            walk.line(row)
    if walk is None:
        if not lines.last and not lines.rest:
            raise empty(name)
        _header(lines.last or lines.rest, name=name, expect_agent=expect_agent)
        raise cut_off(name, 1) if lines.rest else _unsealed(name, 1)
    return walk.close(lines, digest.hexdigest())


def _header(line: bytes, *, name: str, expect_agent: str | None) -> Header:
    header = open_header(line, name=name, expect_agent=expect_agent)
    strictly(line, name=name, number=1)
    return header


class _Walk:
    """One pass over a ledger's events. The first fault of what they say waits for the end."""

    def __init__(self, name: str, header: Header, *, marked: Collection[str]) -> None:
        self._name = name
        self._header = header
        self._wanted = marked
        self._marked: set[str] = set()
        self._trail = Trail()
        self._order = Order()
        self._lives = Lives(guarded=header.guarded)
        self._audit = Audit(header, self._lives)
        self._fault: LedgerError | None = None
        self._effects = 0
        self._out_twice = 0
        self._first = ""
        self._last = ""
        self._keys = Keys(header)
        if wrong := false_declaration(header):
            self._refuse(wrong, 1)

    def line(self, row: bytes) -> None:
        """Take one event's line into account."""
        number = self._trail.events + 2
        try:
            strictly(row, name=self._name, number=number)
            event = open_event(row, name=self._name, number=number)
        except LedgerError as exc:
            self._unreadable(row, number, exc)
            return
        own = link(row)
        self._trail.add(run=event.run, prev=event.prev, own=own, at=event.at)
        if own in self._wanted:
            self._marked.add(own)
        self._effects += happened(event)
        self._out_twice += isinstance(event, EffectFenced)
        self._first = min(self._first, event.at) if self._first else event.at
        self._last = max(self._last, event.at)
        if self._fault is None and not self._trail.unchained:
            self._judge(event, number)

    def _unreadable(self, row: bytes, number: int, exc: LedgerError) -> None:
        if not looks_like_text(row):
            raise LedgerError(
                f"{self._name}, line {number}: not text: the file is damaged. Restore it.",
                slug="ledger-not-text",
            ) from None
        if (kind := kind_of(row)) in {"ledger", "seal"}:
            raise LedgerError(
                f"{self._name}, line {number}: a second {kind} line: two ledgers in one file. "
                "Restore the one that you mean.",
                slug="ledger-spliced",
            ) from None
        self._fault = self._fault or exc
        self._trail.add_broken()

    def _judge(self, event: Event, number: int) -> None:
        if wrong := self._order.check(event):
            self._refuse(wrong, number, slug="ledger-order")
        elif wrong := _undeclared(event, self._header):
            self._refuse(wrong, number)
        elif false := self._keys.false(event):
            self._refuse(false, number, slug="ledger-key")
        elif illegal := self._lives.follow(event):
            self._refuse(illegal.reason, number, slug="ledger-lifecycle")
        else:
            self._audit.feed(event, line=number)

    def _refuse(self, what: str, number: int, *, slug: str = "ledger-declaration") -> None:
        self._fault = self._fault or LedgerError(
            f"{self._name}, line {number}: {what}. Whatever wrote this ledger is at fault: "
            "pull, record or import it again.",
            slug=slug,
        )

    def close(self, lines: Lines, digest: str) -> Summary:
        """Check the seal against what was seen, then raise what waited."""
        trail = self._trail
        number = trail.events + 2
        seal = _seal(lines, name=self._name, number=number, linked=trail.linked)
        if trail.broken and self._fault is not None and digest == seal.digest:
            raise self._fault  # it was sealed like this, so it is no later damage
        if not trail.whole(seal, digest):
            raise trail.explain(seal, name=self._name, sealed_so=digest == seal.digest)
        if seal.effects != self._effects:
            what = f"the seal counts {seal.effects} effects, but {self._effects} went out"
            self._refuse(what, number, slug="ledger-tampered")
        if self._fault is not None:
            raise self._fault
        if findings := self._audit.findings():
            raise SilentSkip(self._name, findings)
        return Summary(
            header=self._header,
            events=trail.events,
            effects=self._effects,
            runs=len(trail.heads),
            open_runs=self._order.open_runs,
            in_doubt=self._lives.in_doubt(),
            out_twice=self._out_twice,
            digest=digest,
            first=self._first,
            last=self._last,
            seal=seal,
            marked=frozenset(self._marked),
        )


def _undeclared(event: Event, header: Header) -> str | None:
    match event:
        case EffectClaimed() | ToolRead() | CallBlocked() if event.decl:
            named = header.declarations.get(event.decl)
            if named is None:
                return f"declaration {event.decl!r} of {event.tool!r} is not in the header"
            if event.tool != named.tool and event.tool not in named.aliases:
                return f"declaration {event.decl!r} is of {named.tool!r}, not of {event.tool!r}"
            # Of a blocked call nothing went out, so it may be either.
            if not isinstance(event, CallBlocked) and named.effect is isinstance(event, ToolRead):
                stands, said = ("a read", "an effect") if named.effect else ("an effect", "a read")
                return f"a call of {event.tool!r} stands there as {stands}, and is declared {said}"
            return None
        case _:
            return None


def _seal(lines: Lines, *, name: str, number: int, linked: bool) -> Seal:
    """The last line as a seal. Raises `LedgerError`: cut off, unsealed, or a damaged seal."""
    if lines.rest:
        raise cut_off(name, number)
    seal = open_seal(lines.last)
    if seal is None or not _says_all(lines.last, name=name, number=number):
        raise _no_seal(lines.last, name=name, number=number, linked=linked)
    return seal


def _says_all(line: bytes, *, name: str, number: int) -> bool:
    """Whether a seal is strict JSON in the one spelling that seals have.

    It spells out every member, so that none can be renamed, and has no blank that could be added.
    """
    try:
        strictly(line, name=name, number=number)
    except LedgerError:
        return False
    members = msgspec.json.decode(line, type=dict[str, object])
    return members.keys() >= set(Seal.__struct_fields__) and msgspec.json.encode(members) == line


def cut_off(name: str, number: int) -> LedgerError:
    """Why a file whose last line lacks its end is refused (ledger-truncated)."""
    return LedgerError(
        f"{name}, after line {number}: the last line has no end: the file was cut off. "
        "Restore it from version control, or pull or record it again.",
        slug="ledger-truncated",
    )


def _no_seal(line: bytes, *, name: str, number: int, linked: bool) -> LedgerError:
    try:
        event = open_event(line, name=name, number=number)
    except LedgerError:
        return LedgerError(
            f"{name}, line {number}: the last line is no seal: it was changed, or damaged. "
            "Restore the file from version control, or pull or record it again.",
            slug="ledger-tampered",
        )
    if linked or event.prev:
        return LedgerError(
            f"{name}, after line {number}: the file ends without a seal: it was cut off, or is "
            "still being written. Restore it; if it is whole, run `backstop ledger seal`.",
            slug="ledger-unsealed",
        )
    return _unsealed(name, number)


def _unsealed(name: str, number: int) -> LedgerError:
    return LedgerError(
        f"{name}, after line {number}: never sealed. Run `backstop ledger seal {name}`.",
        slug="ledger-unsealed",
    )
