"""What is known of one tool beside its key: what it can do about a doubt, and how long it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from backstop.guard.claims.capability import Capability
from backstop.guard.claims.desk import NoEffectOn

LEASE_S: Final = 300.0
"""Seconds until a claim lapses whose owner cannot be seen, where nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Safety:
    """How a tool's effect may be tried again, if at all.

    `no_effect_on` are the exceptions of which it vouches that nothing happened. `lease_s` is
    how many seconds its claim holds where nobody can see whether its owner still runs; zero
    seconds are an end, too. `broken` says why what was declared cannot be relied on: then the
    tool's effects are refused.
    """

    capability: Capability | None = None
    no_effect_on: NoEffectOn = ()
    lease_s: float = LEASE_S
    broken: str = ""


NO_SAFETY: Final = Safety()
"""A tool about which nothing was said: a doubt waits for a person."""
