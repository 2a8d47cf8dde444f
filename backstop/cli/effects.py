"""``backstop effects list|resolve|trust``."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from typing import Final

import msgspec

from backstop.cli.options import Format
from backstop.cli.stores import Place
from backstop.core.canon import NotCanonical, canonical, parse
from backstop.core.effecttrust import UNSETTLED, Act, Ruled
from backstop.core.events import NOTHING
from backstop.core.fenced import out_twice
from backstop.core.lifecycle import Phase
from backstop.errors import UsageError
from backstop.guard.claims.resolving import SHOWN, Outcome, Word, find, may_run
from backstop.guard.claims.resolving import resolve as decide
from backstop.meshports import MeshStore, OutEffect
from backstop.reports.effects import Listing, is_ambiguous, render, render_json
from backstop.reports.escape import plain

_LEAST: Final = 6


def list_effects(where: Place, *, in_doubt: bool, form: Format) -> str:
    """Every effect that is not decided, and those that may be out twice."""
    store = where.open()
    listing = Listing(
        store=where.url,
        standings=tuple(
            standing for standing in store.standings() if is_ambiguous(standing) or not in_doubt
        ),
        out_twice=out_twice(store.read),
        options=where.options,
        distrusted=() if in_doubt else tuple(_distrusted(store)),
    )
    return render_json(listing) if form is Format.JSON else render(listing)


def trust(where: Place, key: str, *, keep: bool, taken_back: bool, by: str | None) -> str:
    """A person stands by an effect in which trust broke, or took it back; one line.

    Raises `UsageError` for too little of a key, or for none or both of the two.
    """
    if keep is taken_back:
        raise UsageError("say one of --keep and --taken-back")
    _check_key(key)
    store = where.open()
    claimed = find(store, key).claimed
    who = f"person:{by or _user()}"
    act = Act.KEEP if keep else Act.TAKE_BACK
    store.rule([Ruled(key=claimed.key, act=act, note=who)], lease=None)
    stands = "stays" if keep else "was taken back, and may be made anew"
    return (
        f"{plain(claimed.tool)} {claimed.key[:SHOWN]}, run {plain(claimed.run)}: {stands}, by "
        f"{plain(who)}"
    )


def _distrusted(store: MeshStore) -> Iterator[OutEffect]:
    if not store.control().breaks:
        return  # the usual case, and effects are many: they are looked at only where needed
    for effect in store.out():
        if effect.trust in UNSETTLED and _may_be_out(effect):
            yield effect


def _may_be_out(effect: OutEffect) -> bool:
    return effect.standing.phase in {Phase.COMMITTED, Phase.IN_DOUBT, Phase.EXECUTING}


def resolve(where: Place, key: str, word: Word) -> str:
    """Put a person's word on an effect on record; how it stands now, in one line.

    Raises `UsageError` for too little of a key: a slip of the finger decides nothing.
    """
    _check_key(key)
    standing = decide(where.open(), key, word)
    claimed = standing.claimed
    warning = (
        "; its owner may still be at it" if word.to != "committed" and may_run(standing) else ""
    )
    return (
        f"{plain(claimed.tool)} {claimed.key[:SHOWN]}, run {plain(claimed.run)}, step "
        f"{plain(claimed.step)}: {standing.phase.value}, by {plain(word.by)}{warning}"
    )


def _check_key(key: str) -> None:
    if len(key.strip().removesuffix("…")) < _LEAST:
        raise UsageError(f"{key!r} is too little of a key to decide by; write {_LEAST} characters")


def word(
    *,
    committed: str | None,
    failed: bool,
    retry: bool,
    reason: str,
    by: str | None,
    force: bool,
) -> Word:
    """What the options say. Raises `UsageError` for none or several outcomes, or a bad result."""
    said: list[Outcome] = []
    if committed is not None:
        said.append("committed")
    if failed:
        said.append("failed")
    if retry:
        said.append("reopened")
    if len(said) != 1:
        raise UsageError("say one of --committed RESULT, --failed and --retry")
    if force and not retry:
        raise UsageError("--force goes with --retry only")
    return Word(
        to=said[0],
        by=f"person:{by or _user()}",
        reason=reason,
        result=NOTHING if committed is None else _result(committed),
        force=force,
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"  # a container whose user has no name


def _result(text: str) -> msgspec.Raw:
    try:
        return msgspec.Raw(canonical(parse(text)).encode())
    except NotCanonical as fault:
        raise UsageError(
            f"--committed: the result is no strict JSON: {fault}; text needs its quotes, and null "
            "says that there is none"
        ) from None
