"""The mesh's part of the ledger in Firestore: its control state, and claims that depend on it.

A claim with a precondition is written in a transaction that has read the control state, which
costs a call more than one without: a trust break, which writes that state, stands before it or
behind it. The record of the effect needs no lock: as ever, it is written on condition of its
version. The server's clock tells the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Final

import msgspec

from backstop.adapters.firestore.chunks import Spelled, spelled
from backstop.adapters.firestore.documents import GATED, RUN, TRUST, Effect, effect_of
from backstop.adapters.firestore.keeper import Keeper, Let
from backstop.adapters.firestore.leases import FENCE, Leases, fence_of
from backstop.adapters.firestore.messages import Document, Range, Value, Write
from backstop.adapters.firestore.wire import Lost, Patience
from backstop.adapters.gating import (
    CONTROL,
    Passed,
    check_lease,
    claimed_override,
    event_of_break,
    gated_ruling,
    let_through,
    ruled_upon,
    spelled_control,
)
from backstop.adapters.gating import GATED as GATED_OF
from backstop.adapters.records import Doubtful, Granted, standing
from backstop.core.effectgate import (
    Control,
    Lease,
    Precondition,
    Reach,
    Times,
    broken,
    thawed,
    withheld,
)
from backstop.core.effecttrust import Gated, Ruled, Trust, trust_in
from backstop.core.events import Checkpointed, EffectClaimed
from backstop.core.trustbreak import TrustBreak
from backstop.errors import BackstopError
from backstop.meshports import OutEffect
from backstop.ports import Answer, Claim, Held, Liveness

_DIGEST: Final = "digest"
_BODY: Final = "body"
_CHUNKED: Final = "body_chunks"
_SECOND: Final = 1_000_000
_STATES: Final = tuple(trust.value for trust in Trust)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What a transaction has read: the control state, the recovery's fence, the server's time."""

    transaction: bytes
    control: Control
    fence: int
    now: float


class Mesh:
    """The mesh of the ledger that `keeper` keeps, below the path `ledger`.

    `owner` tells what can be seen of an effect's owner, `own` takes note of a claim of ours.
    """

    def __init__(
        self,
        keeper: Keeper,
        *,
        ledger: str,
        token: Callable[[], str],
        owner: Callable[[Effect | None], Liveness],
        own: Callable[[Effect], Claim],
    ) -> None:
        self._keeper = keeper
        self._database = keeper.database
        self._path = f"{ledger}/mesh/control"
        self._owner = owner
        self._own = own
        self._known = ("", Control())
        self.leases = Leases(self._database, ledger, token)

    def claim(self, intent: EffectClaimed, asked: Precondition, *, likely: bool) -> Claim | Answer:
        """Take the right to run `intent` if what is `asked` holds.

        A key that is `likely` to be there is looked at first.
        """
        patience = self._database.patience()
        effect = self._keeper.look(intent.key, patience) if likely else None
        while True:
            seen = self._begin(asked.lease, patience)
            answer = self._tried(effect, intent, asked, seen, patience)
            if answer is not None:
                return answer
            self._go_on(patience, intent.key)
            effect = self._keeper.look(intent.key, patience)

    def control(self) -> Control:
        """The control state."""
        return self._control_of(self._document(self._database.patience()))

    def break_trust(self, found: TrustBreak, *, run: str, reach: Sequence[Reach]) -> Control:
        """Put a break on record, freeze what it reaches, and begin an epoch."""
        patience = self._database.patience()
        while True:
            document = self._document(patience)
            before = self._control_of(document)
            control, one = broken(before, found, run=run, reach=reach)
            if control is before:
                return control
            write = self._writing(control, document)
            if self._keeper.broken(event_of_break(one), found.id, write, patience):
                return control
            self._go_on(patience, found.id)

    def out(self, run: str | None) -> Iterator[OutEffect]:
        """The effects of a run, or of all, that passed the gate, oldest first."""
        where: dict[str, str | Sequence[str]] = {TRUST: _STATES}
        if run is not None:
            where[RUN] = run
        asked = Range(collection=self._keeper.effects, where=where)
        effects = [effect_of(one, self._keeper.chunks) for one in self._database.query(asked)]
        effects.sort(key=lambda effect: effect.record.since)
        control = self.control()
        for effect in effects:
            gated = _gated(effect)
            if gated is not None:
                shown = standing(
                    effect.record, owner=self._owner(effect), now=effect.read / _SECOND
                )
                yield OutEffect(standing=shown, gated=gated, trust=trust_in(gated, control))

    def rule(self, ruled: Sequence[Ruled], *, lease: Lease | None) -> None:
        """Say what becomes of effects in which trust broke: of all of them, or of none."""
        patience = self._database.patience()
        while ruled:
            seen = self._begin(lease, patience)
            writes: list[Write] = []
            try:
                if lease is not None:
                    check_lease(lease, seen.fence)
                for one in ruled:
                    effect = self._keeper.look(one.key, patience)
                    before = None if effect is None else _gated(effect)
                    after = ruled_upon(before, one, seen.control, lease=lease is not None)
                    if effect is not None and after != before:
                        writes.append(self._keeper.writing_beside(effect, _beside(after)))
            except BackstopError:
                self._database.rollback(seen.transaction)
                raise
            if not writes:
                self._database.rollback(seen.transaction)
                return
            # Where an answer was lost, what is done already changes nothing the second time.
            done = self._database.commit(writes, patience, transaction=seen.transaction)
            if not isinstance(done, Lost):
                return
            self._go_on(patience, ruled[0].key)

    def thaw(self, reach: Sequence[Reach], *, lease: Lease, epoch: int) -> bool:
        """Let go of what was frozen up to `epoch`, unless trust broke since."""
        patience = self._database.patience()
        while True:
            begun = self._database.begin([self._path, self.leases.path(lease.run)], patience)
            document, leased = begun.documents
            try:
                check_lease(lease, fence_of(leased))
                control = thawed(self._control_of(document), reach, epoch=epoch)
            except BackstopError:
                self._database.rollback(begun.id)
                raise
            if control is None or document is None:
                self._database.rollback(begun.id)
                return control is not None
            write = self._writing(control, document)
            done = self._database.commit([write], patience, transaction=begun.id)
            if not isinstance(done, Lost):
                return True
            self._go_on(patience, lease.run)

    def record(self, made: Checkpointed, *, lease: Lease) -> None:
        """Add a checkpoint that was made under a lease, if that is in force."""
        patience = self._database.patience()
        while True:
            begun = self._database.begin([self.leases.path(lease.run)], patience, only=(FENCE,))
            try:
                check_lease(lease, fence_of(begun.documents[0]))
            except BackstopError:
                self._database.rollback(begun.id)
                raise
            if self._keeper.added(made, patience, transaction=begun.id):
                return
            self._go_on(patience, lease.run)

    def _tried(
        self,
        effect: Effect | None,
        intent: EffectClaimed,
        asked: Precondition,
        seen: _Seen,
        patience: Patience,
    ) -> Claim | Answer | None:
        """What becomes of the claim in the transaction; None if it has to be tried anew."""
        why = withheld(seen.control, asked, Times(now=seen.now), fence=seen.fence)
        if why is not None:
            self._database.rollback(seen.transaction)
            return why
        passed = self._ruled(effect, intent, asked, seen.control)
        let = _let(seen, passed.gated)
        match passed.ruled:
            case Granted(event=event, record=after) as granted:
                mine = self._keeper.claimed(effect, event, after, patience, let=let)
                said = claimed_override(granted, intent)
                if mine is None:
                    return None
                return msgspec.structs.replace(self._own(mine), override=said)
            case Held() if effect is not None and self._keeper.unstarted(effect):
                # It is begun now, by what holds now, whenever it was asked for first.
                let = _let(seen, let_through(asked, seen.control))
                mine = self._keeper.taken_up(effect, patience, let=let)
                return None if mine is None else self._own(mine)
            case Doubtful(event=doubt, record=after):
                self._database.rollback(seen.transaction)
                if effect is not None:
                    self._keeper.settled(effect, doubt, after, patience)
                return None
            case answer if effect is not None and let.beside:
                return answer if self._keeper.set_beside(effect, let, patience) else None
            case answer:
                self._database.rollback(seen.transaction)
                return answer

    def _ruled(
        self, effect: Effect | None, intent: EffectClaimed, asked: Precondition, control: Control
    ) -> Passed:
        return gated_ruling(
            None if effect is None else effect.record,
            None if effect is None else _gated(effect),
            intent,
            asked,
            control,
            owner=partial(self._owner, effect),
            now=lambda: 0.0 if effect is None else effect.read / _SECOND,
        )

    def _begin(self, lease: Lease | None, patience: Patience) -> _Seen:
        """Begin a transaction by reading the control state; what is known of it is not read."""
        paths = [self._path] if lease is None else [self._path, self.leases.path(lease.run)]
        while True:
            begun = self._database.begin(paths, patience, only=(_DIGEST, FENCE))
            document = begun.documents[0]
            digest = "" if document is None else document.text(_DIGEST)
            try:
                if digest != self._known[0]:
                    # Read outside of it: if it changed since, it is not what the digest says.
                    self._control_of(self._document(patience))
                known, control = self._known
                if digest == known:
                    return _Seen(
                        transaction=begun.id,
                        control=control,
                        fence=0 if lease is None else fence_of(begun.documents[1]),
                        now=begun.read / _SECOND,
                    )
                self._go_on(patience, self._path)
            except BackstopError:
                self._database.rollback(begun.id)
                raise
            self._database.rollback(begun.id)

    def _document(self, patience: Patience) -> Document | None:
        (found,) = self._database.get([self._path], patience)
        return found

    def _control_of(self, document: Document | None) -> Control:
        digest = "" if document is None else document.text(_DIGEST)
        known, control = self._known
        if digest == known:
            return control
        control = Control()
        if document is not None:
            held = Spelled(text=document.text(_BODY), chunks=document.text(_CHUNKED))
            control = _decoded(self._keeper.chunks.line(held), digest, self._path)
        self._known = digest, control
        return control

    def _writing(self, control: Control, document: Document | None) -> Write:
        body = spelled_control(control)
        held = spelled(body)
        self._keeper.chunks.put(body, held)
        said = {_CHUNKED: held.chunks} if held.chunks else {_BODY: held.text}
        fields: dict[str, Value] = {_DIGEST: sha256(body).hexdigest(), **said}
        dropped = () if document is None else tuple({_BODY, _CHUNKED} - fields.keys())
        version = None if document is None else document.version
        return Write(path=self._path, fields=fields, version=version, dropped=dropped)

    def _go_on(self, patience: Patience, what: str) -> None:
        if not patience.goes_on():
            raise BackstopError(
                f"{self._path}: others wrote to it all the time while {what[:12]}… was to be "
                "written; nothing was done: try again",
                slug="store-busy",
            )


def _let(seen: _Seen, gated: Gated | None) -> Let:
    return Let(transaction=seen.transaction, beside={} if gated is None else _beside(gated))


def _beside(gated: Gated) -> Mapping[str, Value]:
    return {GATED: msgspec.json.encode(gated).decode(), TRUST: gated.trust.value}


def _gated(effect: Effect) -> Gated | None:
    if not effect.gated:
        return None
    try:
        return GATED_OF.decode(effect.gated)
    except msgspec.MsgspecError as error:
        raise _unreadable(effect.path, error) from error


def _decoded(body: bytes, digest: str, path: str) -> Control:
    try:
        if sha256(body).hexdigest() == digest:
            return CONTROL.decode(body)
    except msgspec.MsgspecError as error:
        raise _unreadable(path, error) from error
    raise _unreadable(path, "it is not what its digest says")


def _unreadable(path: str, why: object) -> BackstopError:
    return BackstopError(
        f"{path}: cannot be read as what the mesh keeps ({why}); no effect goes out: restore the "
        "document, or use the Backstop that wrote it",
        slug="store-unreadable",
    )
