"""A version whose runs a live model took part in: what its repeats agree on.

A finding counts if enough of the repeats show it. One that fewer show is no finding, and no
pass either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from backstop.core.divergence import Comparison, Divergence
from backstop.core.history import History
from backstop.core.intents import Intent, RunReplayed
from backstop.core.keying import Rules
from backstop.gate.comparing import Asked, comparing


def settled(history: History, asked: Asked, rules: Rules) -> tuple[Comparison, tuple[str, ...]]:
    """Compare each repeat, and put together what they agree on; and why the rest is disputed."""
    told = {run.run: _repeats(run) for run in (asked.replayed or {}).values()}
    repeats = max(told.values(), default=1)
    if repeats == 1 or asked.live is None:
        return comparing(history, asked, rules), ()
    found = [
        comparing(
            history,
            replace(
                asked,
                intents=[one for one in asked.intents if _is_of(one, number, told.get(one.run, 1))],
            ),
            rules,
        )
        for number in range(1, repeats + 1)
    ]
    return _together(found, asked.live.agreement)


def _repeats(run: RunReplayed) -> int:
    return 1 if run.repeats is msgspec.UNSET else run.repeats


def _is_of(intent: Intent, number: int, last: int) -> bool:
    """Is the intent of this repeat? A run that was not repeated so often shows its last."""
    return intent.repeat is msgspec.UNSET or intent.repeat == min(number, last)


def _together(found: Sequence[Comparison], agreement: int) -> tuple[Comparison, tuple[str, ...]]:
    shown: dict[tuple[object, ...], list[list[Divergence]]] = defaultdict(
        lambda: [[] for _ in found]
    )
    for number, comparison in enumerate(found):
        for divergence in comparison.divergences:
            shown[_harm(divergence)][number].append(divergence)
    stands: list[Divergence] = []
    disputed: list[str] = []
    for by_repeat in shown.values():
        for nth in range(max(map(len, by_repeat))):
            same = [one[nth] for one in by_repeat if len(one) > nth]
            first = same[0]
            if len(same) >= agreement:
                stands.append(first)
                continue
            stands.append(replace(first, assumed=True))
            disputed.append(
                f"run {first.run}: {first.kind.value} of {first.tool} in step {first.step} shows "
                f"in {len(same)} of {len(found)} replays with the live model, and {agreement} "
                "have to agree"
            )
    stands.sort(key=lambda one: (one.run, one.cursor, one.kind.value, one.tool, one.fingerprint))
    merged = replace(
        found[0],
        divergences=tuple(stands),
        matched=min(one.matched for one in found),
        regrouped={run: why for one in found for run, why in one.regrouped.items()},
        unkeyed=tuple(dict.fromkeys(call for one in found for call in one.unkeyed)),
    )
    return merged, tuple(disputed)


def _harm(divergence: Divergence) -> tuple[object, ...]:
    """What makes findings of two repeats one: the same harm to the same recorded work.

    Three repeats that order anew under three names agree that it would be ordered anew.
    """
    recorded, intended = divergence.recorded, divergence.intended
    named = (recorded.run, recorded.key) if recorded else ()
    asked = (intended.key, intended.fingerprint) if intended and not recorded else ()
    return (divergence.kind, divergence.run, divergence.assumed, *named, *asked)
