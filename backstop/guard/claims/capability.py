"""What a tool can do about a doubt: take our key downstream, answer a lookup, or nothing.

Without a capability a doubt waits for a person. `keyed` is the only one that needs no
assumption about time: the provider itself refuses to act twice on one key, for as long as it
remembers it. A `probe` is believed when it says "yes"; its "no" counts once whoever ran the
effect provably runs no more and the effect has had time to show.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias

import msgspec

from backstop.core.canon import NotCanonical, canonical, digest
from backstop.core.events import EffectClaimed, EffectResolved
from backstop.errors import BackstopError, UsageError
from backstop.guard.journal import raw
from backstop.ports import Held, InDoubt

BY_KEYED: Final = "keyed"
BY_PROBE: Final = "probe"

_SPAN: Final = re.compile(r"([0-9]{1,6})(s|m|h|d)", re.ASCII)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Happened:
    """The probe found the effect; `result` is what the call would have given."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class DidNotHappen:
    """The probe knows that there is no such effect, and that none is on its way."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The probe cannot tell."""


Found: TypeAlias = Happened | DidNotHappen | Unknown

Probing: TypeAlias = Callable[[str, Mapping[str, Any]], Found | Awaitable[Found]]
"""``probe(key, arguments)``: was the effect of this key, with these arguments, seen?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """The tool hands our key to a provider that acts once on it, within `retention_s` seconds.

    `param` is the tool's parameter that takes the key.
    """

    param: str
    retention_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The tool's effect can be looked up. `settle_s` seconds after it, the lookup is right."""

    ask: Probing
    settle_s: float


Capability: TypeAlias = Keyed | Probe


def keyed(param: str, *, retention: str | timedelta) -> Keyed:
    """The tool's parameter `param` takes our key downstream; the provider keeps it so long.

    `retention` is a span like ``24h`` or ``30d``. Raises `UsageError` for one that is none.
    """
    return Keyed(param=param, retention_s=seconds(retention))


def probe(ask: Probing, *, settle: str | timedelta) -> Probe:
    """The effect can be looked up by `ask`, which is right `settle` after it happened.

    Raises `UsageError` for a `settle` that is no span.
    """
    return Probe(ask=ask, settle_s=seconds(settle))


def seconds(span: str | timedelta) -> float:
    """A span like ``30s``, ``5m``, ``24h`` or ``30d`` in seconds; zero is one."""
    if isinstance(span, timedelta) and span >= timedelta():
        return span.total_seconds()
    if isinstance(span, timedelta) or (match := _SPAN.fullmatch(span)) is None:
        raise UsageError(f"{span!r} is no time span: write a whole number and s, m, h or d")
    return int(match[1]) * _UNITS[match[2]]


def claimed_with(intent: EffectClaimed, capability: Capability | None) -> EffectClaimed:
    """The claim, saying what its tool can do about a doubt."""
    match capability:
        case Keyed(retention_s=retention):
            return msgspec.structs.replace(intent, capability=BY_KEYED, retention_s=retention)
        case Probe(settle_s=settle):
            return msgspec.structs.replace(intent, capability=BY_PROBE, settle_s=settle)
        case None:
            return intent


def probing(capability: Capability) -> Probing | None:
    """The lookup that a tool offers; None if it offers none."""
    return capability.ask if isinstance(capability, Probe) else None


def downstream_key(intent: EffectClaimed) -> str:
    """The key that a provider is handed; a deliberate repeat needs another one than the first."""
    if intent.override is None:
        return intent.key
    return digest(canonical([intent.key, intent.override]))


def resolution(
    capability: Capability | None, intent: EffectClaimed, doubt: InDoubt, found: Found
) -> EffectResolved | Held | None:
    """What follows of a doubt: a resolution to write, a wait, or nothing (I5).

    `found` is the probe's answer, `Unknown` where nobody was asked. Raises `BackstopError`
    (``result-not-canonical``) where the lookup found something that cannot be kept.
    """
    match capability, found:
        case Keyed(retention_s=retention), _ if _is_remembered(intent, doubt, retention):
            why = "the provider acts once on its key, which it still remembers"
            return _resolved(intent, doubt, "reopened", BY_KEYED, why)
        case Probe(), _ if doubt.repeats:
            return None  # a lookup finds the first one, too: of a repeat it says nothing
        case Probe(), Happened(result=result):
            done = _resolved(intent, doubt, "committed", BY_PROBE, "the lookup found it")
            return msgspec.structs.replace(done, result=_kept(result, intent.tool))
        # Who ran it under a key of ours was not waited for: others may be at it still.
        case Probe(), DidNotHappen() if not doubt.gone or doubt.capability == BY_KEYED:
            return None
        case Probe(settle_s=settle), DidNotHappen():
            if doubt.age_s < max(settle, doubt.settle_s):
                return Held(owner="a lookup that has to wait until the effect would show")
            why = "its owner is gone, and the lookup knows of no such effect"
            return _resolved(intent, doubt, "reopened", BY_PROBE, why)
        case _:
            return None


def _is_remembered(intent: EffectClaimed, doubt: InDoubt, retention: float) -> bool:
    # What was not claimed as keyed was sent without a key, and what was claimed for another
    # override with another one: the provider would act again.
    sent_with_our_key = doubt.capability == BY_KEYED and doubt.override == intent.override
    return sent_with_our_key and doubt.claim_age_s < min(retention, doubt.retention_s)


def _kept(result: object, tool: str) -> msgspec.Raw:
    try:
        return raw(result)
    except NotCanonical as error:
        raise BackstopError(
            f"the lookup of {tool} found something that cannot be kept: {error}; return JSON "
            "values",
            slug="result-not-canonical",
        ) from error


def _resolved(
    intent: EffectClaimed, doubt: InDoubt, to: str, by: str, reason: str
) -> EffectResolved:
    return EffectResolved(
        run=intent.run,
        at="",
        v=intent.v,
        key=intent.key,
        to=to,
        by=by,
        fence=doubt.fence + (to == "reopened"),
        reason=reason,
        trace=intent.trace,
        span=intent.span,
    )
