"""A version's ways past interception under a policy: what is not covered (D7), what is said."""

from __future__ import annotations

from collections.abc import Sequence

from backstop.core.intents import Escaped
from backstop.core.verdict import Policy


def not_covered(escapes: Sequence[Escaped], policy: Policy) -> tuple[str, ...]:
    """What stands against a pass: what counts and is not accepted."""
    return tuple(one.told for one in escapes if one.counts and one.way not in policy.accepts)


def noted(escapes: Sequence[Escaped], policy: Policy) -> tuple[str, ...]:
    """What a verdict says all the same: what does not count, and what was accepted."""
    rest = [one for one in escapes if not one.counts or one.way in policy.accepts]
    return tuple(
        f"not covered, and accepted by gate.accepts: {one.told}"
        if one.counts
        else f"not covered, and not counted: {one.told}"
        for one in rest
    )
