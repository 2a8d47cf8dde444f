"""A person decides what became of an effect that is in doubt (I5).

What a person says is believed, but for one thing: an effect that may still be going on must
not begin again. So a retry waits until whoever ran the effect provably runs no more, and until
a call that was under way has had time to show.
"""

from __future__ import annotations

from math import ceil
from typing import Final, Literal, TypeAlias

import msgspec

from backstop.core.events import NOTHING, EffectFailed, EffectInDoubt, EffectResolved, Failure
from backstop.core.lifecycle import Phase
from backstop.errors import BackstopError
from backstop.ports import Claim, Custody, Held, Liveness, Standing, Store

SETTLE_S: Final = 30.0
"""Seconds until a call that was under way has shown, where its tool declares no time."""

SHOWN: Final = 12
"""Digits of a key that a person is shown, and may type."""

_FREE: Final = frozenset({Phase.RETRYABLE, Phase.REOPENED})
"""What did not happen, and waits for somebody to ask for it again."""

Outcome: TypeAlias = Literal["committed", "failed", "reopened"]


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says of an effect: its outcome, who says it, and why.

    `result` is what the call would have given. `force` reopens what may still be going on.
    """

    to: Outcome
    by: str
    reason: str = ""
    result: msgspec.Raw = NOTHING
    force: bool = False


def find(custody: Custody, key: str) -> Standing:
    """The one effect whose key begins with `key`.

    Raises `BackstopError`: ``effect-unknown``, ``effect-ambiguous``.
    """
    wanted = key.strip().lower().removesuffix("…")
    found = list(custody.standings(wanted)) if wanted else []
    exact = [one for one in found if one.claimed.key == wanted]
    if len(found) == 1 or exact:
        return (exact or found)[0]
    if not found:
        raise BackstopError(
            f"no effect has a key that begins with {key!r}; `backstop effects list` shows those "
            "that are not decided",
            slug="effect-unknown",
        )
    several = ", ".join(f"{one.claimed.key[: SHOWN + len(wanted)]}" for one in found[:5])
    raise BackstopError(
        f"{len(found)} effects have a key that begins with {key!r}: {several}; write more of it",
        slug="effect-ambiguous",
    )


def resolve(store: Store, key: str, word: Word) -> Standing:
    """Put a person's word on record; how the effect stands then. `key` may be the beginning of one.

    An effect whose owner is gone is put in doubt first; before a retry of one whose body
    outlived its call, it is noted that the owner is gone, also if that refuses. Raises
    `BackstopError`: ``effect-unknown``, ``effect-ambiguous``, ``effect-running``,
    ``effect-not-in-doubt``, and for a retry ``effect-owner`` and ``effect-settling``; or what
    the store raises.
    """
    standing = find(store, key)
    if standing.phase is Phase.EXECUTING:
        _put_in_doubt(store, standing, word.by)
        standing = find(store, standing.claimed.key)
    if standing.phase in _FREE and word.to == "failed":
        _give_up(store, standing, word)
        standing = find(store, standing.claimed.key)
        if standing.phase is Phase.FAILED:
            return standing
    if standing.phase is not Phase.IN_DOUBT:
        raise _not_in_doubt(standing)
    if word.to == "reopened" and not word.force:
        if _has_ended(standing):
            _put_in_doubt(store, standing, word.by)
            standing = find(store, standing.claimed.key)
        _check_over(standing)
    store.settle(
        EffectResolved(
            run=standing.claimed.run,
            at="",
            key=standing.claimed.key,
            to=word.to,
            by=word.by,
            fence=standing.fence + (word.to == "reopened"),
            reason=word.reason,
            result=word.result,
        )
    )
    return find(store, standing.claimed.key)


def may_run(standing: Standing) -> bool:
    """Whether the body of an effect in doubt may still be at it, as far as can be seen."""
    doubt = standing.settled
    # Who settled its own doubt has given up, unless it was cancelled and its body goes on.
    gave_up = isinstance(doubt, EffectInDoubt) and not doubt.running
    return standing.owner is Liveness.UNKNOWN or (standing.owner is Liveness.ALIVE and not gave_up)


def _has_ended(standing: Standing) -> bool:
    """Whether a body that outlived its call is over, and nobody has noted since when."""
    doubt = standing.settled
    outlived = isinstance(doubt, EffectInDoubt) and doubt.running
    return outlived and standing.owner is Liveness.GONE


def _put_in_doubt(store: Store, standing: Standing, by: str) -> None:
    """Let the store rule about a claim whose owner may be gone: nobody else does before it."""
    claimed = standing.claimed
    answer = store.claim(msgspec.structs.replace(claimed, owner=by))
    if isinstance(answer, Held):
        raise _running(standing)
    if isinstance(answer, Claim):
        # It failed for now between two looks. Nothing is to be run here: it is given back.
        given_back = Failure(type="CancelledError", message="before the call began")
        store.settle(
            EffectFailed(
                run=claimed.run,
                at="",
                key=claimed.key,
                error=given_back,
                fence=answer.fence,
                final=False,
            ),
            claim=answer,
        )


def _give_up(store: Store, standing: Standing, word: Word) -> None:
    """Take what is free to be tried again out of everybody's reach, if it still is."""
    claimed = standing.claimed
    answer = store.claim(msgspec.structs.replace(claimed, owner=word.by))
    if isinstance(answer, Claim):
        given_up = Failure(type="Resolved", message=word.reason)
        store.settle(
            EffectFailed(
                run=claimed.run, at="", key=claimed.key, error=given_up, fence=answer.fence
            ),
            claim=answer,
        )


def _running(standing: Standing) -> BackstopError:
    claimed = standing.claimed
    if standing.owner is Liveness.UNKNOWN:
        left = ceil(max(0.0, claimed.lease_s - standing.since_s))
        why = f"nobody here can see whether it lives, and its lease ends in {left} s"
    else:
        why = "it is alive"
    return BackstopError(
        f"{_named(standing)} is running: its owner {claimed.owner} has it, {why}. Wait, or stop "
        "that process and try again",
        slug="effect-running",
    )


def _not_in_doubt(standing: Standing) -> BackstopError:
    phase = standing.phase
    if phase in {Phase.COMMITTED, Phase.FAILED}:
        next_ = "it is decided, and stays so"
    else:
        next_ = "whoever asks for it tries it again; --failed if nobody shall"
    return BackstopError(
        f"{_named(standing)} is {phase.value}, not in doubt: {next_}", slug="effect-not-in-doubt"
    )


def _check_over(standing: Standing) -> None:
    """Refuse to begin again what may still be going on, or may yet show."""
    if may_run(standing):
        seen = {
            Liveness.ALIVE: "is alive, and its call was only cancelled",
            Liveness.UNKNOWN: "cannot be seen from here",
        }[standing.owner]
        raise BackstopError(
            f"{_named(standing)}: its owner {standing.claimed.owner} {seen}, so the call may still "
            "be at it, and a retry would make it twice. Stop that process first; --force if you "
            "know that it is over",
            slug="effect-owner",
        )
    left = (standing.claimed.settle_s or SETTLE_S) - standing.since_s
    if left > 0:
        raise BackstopError(
            f"{_named(standing)}: what was under way may show for {ceil(left)} s yet. Wait, look "
            "whether it happened, and try again; --force if you know that it did not",
            slug="effect-settling",
        )


def _named(standing: Standing) -> str:
    return f"{standing.claimed.tool} {standing.claimed.key[:SHOWN]}"
