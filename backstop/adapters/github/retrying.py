"""When a request to GitHub may be sent again, and after how long: arithmetic on its answer.

What GitHub asks for in such a case stands in its "Best practices for using the REST API": obey
``retry-after``; else wait for ``x-ratelimit-reset`` where nothing remains; else at least a
minute, and longer each time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from random import random
from typing import Final

_FIRST_S: Final = 1.0
_LONGEST_S: Final = 30.0
_SECONDARY_S: Final = 60.0
_SECONDS: Final = re.compile(r"[0-9]{1,12}")
_FAILED: Final = frozenset({408, 500, 502, 503, 504})
_LIMITED: Final = frozenset({403, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """How long all requests of one client may take together, and what tells time and chance.

    `total_s` counts what is spent on requests and on waiting between them, not what the caller
    does meanwhile; `try_s` is for one try, `download_s` for one whole download.
    """

    total_s: float = 120.0
    try_s: float = 20.0
    download_s: float = 300.0
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Send it again after `wait_s`. `limited`: it was turned away unread, so nothing was done."""

    wait_s: float
    limited: bool


def backoff_s(tried: int, chance: float) -> float:
    """Seconds before the next try after `tried` ones: doubled each time, and spread by half.

    `chance` lies in 0..1; many runs that fail at once do not come back at once.
    """
    whole = min(_LONGEST_S, _FIRST_S * 2.0 ** min(tried - 1, 10))
    return whole * (0.5 + chance / 2)


def again(
    *, status: int, headers: Mapping[str, str], said: str, tried: int, chance: float
) -> Again | None:
    """Whether an answer is one of those after which the same request may be sent again.

    `headers` by lower-case name; `said` is GitHub's message. None for an answer that stands: a
    403 that names no limit is a token without rights.
    """
    asked = _seconds(headers.get("retry-after"))
    spread = backoff_s(tried, chance)
    if status in _FAILED:
        return Again(wait_s=spread if asked is None else asked + chance, limited=False)
    if status not in _LIMITED:
        return None
    if asked is not None:
        return Again(wait_s=asked + chance, limited=True)
    if headers.get("x-ratelimit-remaining") == "0":
        return Again(wait_s=_until_reset(headers) + chance, limited=True)
    if status == 429 or "rate limit" in said.lower():  # noqa: PLR2004 - Too Many Requests
        return Again(wait_s=_SECONDARY_S * 2 ** (tried - 1) + spread, limited=True)
    return None


def _seconds(text: str | None) -> float | None:
    # A date is allowed by HTTP, and never sent by GitHub.
    return float(text) if text is not None and _SECONDS.fullmatch(text) else None


def _until_reset(headers: Mapping[str, str]) -> float:
    """By the server's clock on both sides: ours may be wrong."""
    reset = _seconds(headers.get("x-ratelimit-reset"))
    try:
        there = parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        there = None
    if reset is None or there is None:
        return _SECONDARY_S
    return max(0.0, reset - there.replace(tzinfo=there.tzinfo or UTC).timestamp()) + 1.0
