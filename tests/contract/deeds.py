"""What tests do to a store: claims of one payment, and what becomes of them."""

from __future__ import annotations

import msgspec

from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Failure,
)
from backstop.ports import Claim, LedgerStore


def pay(
    owner: str = "alice", *, fingerprint: str = "f1", key: str = "k1", **said: object
) -> EffectClaimed:
    intent = EffectClaimed(
        run="r1",
        at="",
        step="s0",
        tool="pay",
        key=key,
        fingerprint=fingerprint,
        args=msgspec.Raw(b'{"to":"acme"}'),
        owner=owner,
    )
    return msgspec.structs.replace(intent, **said)


def granted(store: LedgerStore, intent: EffectClaimed) -> Claim:
    claim = store.claim(intent)
    assert isinstance(claim, Claim)
    return claim


def committed(claim: Claim, result: bytes = b'"paid"') -> EffectCommitted:
    return EffectCommitted(
        run=claim.run,
        at="",
        key=claim.key,
        fence=claim.fence,
        result=msgspec.Raw(result),
        state_delta=msgspec.Raw(b'{"paid":1}'),
    )


def failed(claim: Claim, *, final: bool) -> EffectFailed:
    error = Failure(type="Closed", message="no")
    return EffectFailed(
        run=claim.run, at="", key=claim.key, fence=claim.fence, error=error, final=final
    )


def doubted(claim: Claim, *, running: bool = False) -> EffectInDoubt:
    return EffectInDoubt(
        run=claim.run,
        at="",
        key=claim.key,
        fence=claim.fence,
        reason="timeout",
        running=running,
    )


def resolved(to: str, *, fence: int = 1, run: str = "r1") -> EffectResolved:
    return EffectResolved(
        run=run,
        at="",
        key="k1",
        to=to,
        by="person",
        fence=fence,
        reason="they say so",
        result=msgspec.Raw(b'"seen"'),
    )


def done(store: LedgerStore, intent: EffectClaimed, result: bytes = b'"paid"') -> Claim:
    """Claim and commit."""
    claim = granted(store, intent)
    store.settle(committed(claim, result), claim=claim)
    return claim
