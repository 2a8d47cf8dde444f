"""What a document of the ledger holds: the record of an effect, or an event of its own.

The document of an effect holds two events, as lines: the claim in force, and what settled it
last. A line that is replaced moves into an event document in the same write, so that at every
instant each event is there exactly once. When it was first written, by the server's time, moves
with it: so a snapshot can be told at any later time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp  # type: ignore[import-untyped]

from backstop.adapters.firestore.chunks import Chunks, Spelled
from backstop.adapters.firestore.messages import Document, Value, Write
from backstop.adapters.firestore.wire import Written
from backstop.adapters.records import Record
from backstop.core.events import EffectClaimed, Event
from backstop.core.lifecycle import Life, Phase, decided
from backstop.core.sealing import EVENT
from backstop.errors import BackstopError
from backstop.ports import Settlement

STATE: Final = "state"
TOKEN: Final = "token"  # noqa: S105 - the name of a field
RUN: Final = "run"
STEP: Final = "step"
LAST_RUN: Final = "last_run"
"""Where the settlement is told, if that is another run than the claim's."""
_FENCE: Final = "fence"
_PROCESS: Final = "process"
_OVERRIDES: Final = "overrides"
_EXPIRES: Final = "expire_at"
_CLAIM: Final = "claim"
_LAST: Final = "last"
_DONE: Final = "done"
_LINE: Final = "line"
_WRITTEN: Final = "claim_written"
_BORN: Final = "born"
GATED: Final = "gated"
TRUST: Final = "trust"
"""What the mesh keeps of the effect, and what of it a query asks for."""
_SETTLED: Final = "last_written"
"""When the settlement was written, where the document was rewritten since."""

_NOT_YET_KNOWN: Final = 0
"""An instant of the server's that is the document's last write: whoever writes next knows it."""

_SECOND: Final = 1_000_000


Beside: TypeAlias = Mapping[str, Value]
"""Fields of an effect's document that are the mesh's."""

NOTHING_BESIDE: Final[Beside] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A line in a document; `written` is when, by the server's time, in microseconds."""

    held: Spelled
    stamp: int
    written: int = _NOT_YET_KNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The document of an effect.

    `token` is that of its last write, `process` runs the claim in force. `read` is when it was
    read, by the server, `version` the condition of the next write. `fresh` are fields whose
    instant is that of the last write, `gated` what the mesh keeps of the effect.
    """

    path: str
    record: Record
    token: str
    process: str
    claim: Slot
    last: Slot | None
    updated: int
    read: int
    version: Timestamp
    fresh: tuple[str, ...] = ()
    gated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An event of `run` on its way into a document, under a token of its own."""

    run: str
    slot: Slot
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A line out of a document; `tie` is the name of the document that it has, or moves to."""

    slot: Slot
    tie: str


def effect_of(document: Document, chunks: Chunks) -> Effect:
    """Read the document of an effect. Raises `BackstopError` (``store-unreadable``)."""
    path = document.path
    claim, last = _slot(document, _CLAIM), _slot(document, _LAST)
    claimed = _event(claim, chunks, path)
    settled = None if last is None else _event(last, chunks, path)
    done = _spelled(document, _DONE)
    try:
        phase = Phase(document.text(STATE))
        overrides = msgspec.json.decode(document.text(_OVERRIDES) or "[]", type=tuple[str, ...])
    except (ValueError, msgspec.MsgspecError) as error:
        raise _unreadable(path, error) from None
    if not isinstance(claimed, EffectClaimed) or claim is None:
        raise _unreadable(path, "it holds no claim")
    return Effect(
        path=path,
        record=Record(
            claimed=claimed,
            life=Life(phase=phase, fence=document.number(_FENCE) or 0),
            settled=_settlement(settled, path),
            since=_instant(document, _BORN) / _SECOND,
            moved=document.updated / _SECOND,
            overrides=overrides,
            done=None if done is None else _settlement(_parsed(done, chunks, path), path),
        ),
        token=document.text(TOKEN),
        process=document.text(_PROCESS),
        claim=claim,
        last=last,
        updated=document.updated,
        read=document.read,
        version=document.version,
        fresh=tuple(name for name in (_WRITTEN, _BORN) if document.number(name) == _NOT_YET_KNOWN),
        gated=document.text(GATED),
    )


def claimed(write: Write, said: Said, after: Record, *, process: str, done: Written) -> Effect:
    """The document of an effect after the claim that `write` was."""
    return Effect(
        path=write.path,
        record=after,
        token=said.token,
        process=process,
        claim=replace(said.slot, written=done.at),
        last=None,
        updated=done.at,
        read=done.at,
        version=done.version,
        fresh=_fresh(write.fields),
    )


def claiming(
    path: str, said: Said, after: Record, *, process: str, beside: Beside = NOTHING_BESIDE
) -> list[Write]:
    """A key's first claim."""
    return [Write(path=path, fields={**_claim_fields(said, after, process), **beside})]


def claiming_again(
    effect: Effect,
    said: Said,
    after: Record,
    *,
    process: str,
    events: str,
    beside: Beside = NOTHING_BESIDE,
) -> list[Write]:
    """A further claim over `effect`; its lines move into the collection `events`."""
    fields = {**_claim_fields(said, after, process), _WRITTEN: _NOT_YET_KNOWN, **_known(effect)}
    fields |= beside
    dropped = {_LAST, _chunked(_LAST), _at(_LAST), LAST_RUN, _EXPIRES, _CLAIM, _chunked(_CLAIM)}
    dropped.add(_SETTLED)
    if not after.since and effect.last is not None:
        # A further life begins, with this write; what the life before came to stays at hand.
        fields |= {
            **_spelling(_DONE, effect.last.held),
            _BORN: _NOT_YET_KNOWN,
            _OVERRIDES: msgspec.json.encode(after.overrides).decode(),
        }
        dropped |= {_DONE, _chunked(_DONE)}
    update = Write(
        path=effect.path,
        fields=fields,
        version=effect.version,
        dropped=tuple(dropped - fields.keys()),
    )
    return [update, *_moves(effect, events, claim=True)]


def taking_up(
    effect: Effect, token: str, *, process: str, beside: Beside = NOTHING_BESIDE
) -> Write:
    """A claim that nothing ran under, as one of this process."""
    fields: dict[str, Value] = {TOKEN: token, _PROCESS: process, **_known(effect), **beside}
    return Write(path=effect.path, fields=fields, version=effect.version)


def setting_beside(effect: Effect, token: str, beside: Beside) -> Write:
    """What the mesh keeps of an effect whose record stays as it is."""
    fields: dict[str, Value] = {TOKEN: token, **_known(effect), **beside}
    if effect.last is not None:  # was told by the time of the document's last write
        fields[_SETTLED] = effect.last.written
    return Write(path=effect.path, fields=fields, version=effect.version)


def settling_it(
    effect: Effect, said: Said, after: Record, *, events: str, expires: datetime | None
) -> list[Write]:
    """A settlement of `effect`; one that it replaces moves into the collection `events`."""
    fields: dict[str, Value] = {
        STATE: after.life.phase.value,
        TOKEN: said.token,
        **_spelling(_LAST, said.slot.held),
        _at(_LAST): said.slot.stamp,
        **_known(effect),
    }
    if after.life.fence != effect.record.life.fence:
        fields[_FENCE] = after.life.fence
    if said.run != effect.record.claimed.run:
        fields[LAST_RUN] = said.run
    if expires is not None and decided(after.life.phase):
        fields[_EXPIRES] = expires
    dropped = () if effect.last is None else (_LAST, _chunked(_LAST), LAST_RUN, _SETTLED)
    update = Write(
        path=effect.path,
        fields=fields,
        version=effect.version,
        dropped=tuple(name for name in dropped if name not in fields),
    )
    return [update, *_moves(effect, events, claim=False)]


def adding(path: str, said: Said) -> Write:
    """An event that is about no effect's record."""
    return Write(
        path=path,
        fields={
            RUN: said.run,
            TOKEN: said.token,
            **_spelling(_LINE, said.slot.held),
            _at(_LINE): said.slot.stamp,
        },
    )


def lines_of(document: Document) -> Iterator[Found]:
    """The events that a document holds."""
    for place in (_CLAIM, _LAST, _LINE):
        if (slot := _slot(document, place)) is not None:
            moved = f"{document.id}-{place}-{slot.stamp}"
            yield Found(slot=slot, tie=document.id if place == _LINE else moved)


def held_in(document: Document) -> dict[str, Spelled]:
    """Every line that a document holds, by its place, also of an earlier life."""
    found = {place: _spelled(document, place) for place in (_CLAIM, _LAST, _DONE, _LINE)}
    return {place: held for place, held in found.items() if held is not None}


def rewriting_it(document: Document, lines: Mapping[str, Spelled]) -> Write:
    """The document with other lines in some of its places; all that it tells else stays."""
    fields: dict[str, Value] = {}
    for place, held in lines.items():
        fields |= _spelling(place, held)
    # What was told by the time of the document's last write has to be told by itself from now on.
    for name in (_WRITTEN, _BORN):
        if document.number(name) == _NOT_YET_KNOWN:
            fields[name] = document.updated
    if _spelled(document, _LAST) is not None and document.number(_SETTLED) is None:
        fields[_SETTLED] = document.updated
    dropped = {name for place in lines for name in (place, _chunked(place))}
    return Write(
        path=document.path,
        fields=fields,
        version=document.version,
        dropped=tuple(sorted(dropped - fields.keys())),
    )


def _claim_fields(said: Said, after: Record, process: str) -> dict[str, Value]:
    return {
        STATE: after.life.phase.value,
        _FENCE: after.life.fence,
        TOKEN: said.token,
        _PROCESS: process,
        RUN: after.claimed.run,
        STEP: after.claimed.step,
        **_spelling(_CLAIM, said.slot.held),
        _at(_CLAIM): said.slot.stamp,
    }


def _fresh(fields: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(name for name in (_WRITTEN, _BORN) if fields.get(name) == _NOT_YET_KNOWN)


def _known(effect: Effect) -> dict[str, Value]:
    """The instants that were not known yet when the document was written last."""
    return dict.fromkeys(effect.fresh, effect.updated)


def _moves(effect: Effect, events: str, *, claim: bool) -> Iterator[Write]:
    claimed, settled = effect.record.claimed, effect.record.settled
    moving = ((_CLAIM, effect.claim if claim else None, claimed), (_LAST, effect.last, settled))
    for place, slot, event in moving:
        if slot is not None and event is not None:
            fields: dict[str, Value] = {
                RUN: event.run,
                **_spelling(_LINE, slot.held),
                _at(_LINE): slot.stamp,
                _WRITTEN: slot.written,
            }
            # Beside its effect in the order of names, so that both are in one part of a snapshot.
            yield Write(path=f"{events}/{claimed.key}-{place}-{slot.stamp}", fields=fields)


def _slot(document: Document, place: str) -> Slot | None:
    held = _spelled(document, place)
    if held is None:
        return None
    settled = document.number(_SETTLED) or document.updated
    written = settled if place == _LAST else _instant(document, _WRITTEN)
    return Slot(held=held, stamp=document.number(_at(place)) or 0, written=written)


def _instant(document: Document, name: str) -> int:
    known = document.number(name)
    if known is None:
        return document.created
    return document.updated if known == _NOT_YET_KNOWN else known


def _spelled(document: Document, place: str) -> Spelled | None:
    text, chunks = document.text(place), document.text(_chunked(place))
    return Spelled(text=text, chunks=chunks) if text or chunks else None


def _spelling(place: str, held: Spelled) -> dict[str, Value]:
    return {_chunked(place): held.chunks} if held.chunks else {place: held.text}


def _event(slot: Slot | None, chunks: Chunks, path: str) -> Event:
    if slot is None:
        raise _unreadable(path, "it holds no claim")
    return _parsed(slot.held, chunks, path)


def _parsed(held: Spelled, chunks: Chunks, path: str) -> Event:
    try:
        event: Event = EVENT.decode(chunks.line(held))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None
    return event


def _settlement(event: Event | None, path: str) -> Settlement | None:
    if event is None or isinstance(event, Settlement):
        return event
    raise _unreadable(path, f"{type(event).__name__} settles nothing")


def _unreadable(path: str, why: object) -> BackstopError:
    return BackstopError(
        f"{path}: cannot be read as the record of an effect ({why}); it is not run again: restore "
        "the document, or use the Backstop that wrote it",
        slug="store-unreadable",
    )


def _chunked(place: str) -> str:
    return f"{place}_chunks"


def _at(place: str) -> str:
    return f"{place}_at"
