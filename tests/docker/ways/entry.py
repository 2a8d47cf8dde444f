"""Where the ways out are entered, each under its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

Attempt: TypeAlias = Callable[[dict[str, Any]], object]
"""Raises OSError where it is stopped, and else says what it got; it is told what lies outside."""

WAYS: Final[dict[str, Attempt]] = {}


def way(name: str) -> Callable[[Attempt], Attempt]:
    """Enter a function among the ways."""

    def enter(attempt: Attempt) -> Attempt:
        WAYS[name] = attempt
        return attempt

    return enter
