"""What a version's replays in several worlds agree on, and what that is worth (ADR 0035).

An unstable argument could have come out any way: the verdict is the worst that the policy makes
of any of them, but never a block, since no change is to blame for chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from backstop.core.divergence import Divergence, Kind
from backstop.core.intents import RunReplayed
from backstop.core.keying import IntentCall, Rules, key_intents
from backstop.core.stability import Stability, UnstableField, stability
from backstop.core.verdict import Policy
from backstop.gate.comparing import Asked

_LISTED: Final = 25
_FIELDS_SHOWN: Final = 5


def agreement(first: Asked, rules: Rules) -> Stability | None:
    """What a version's replays in other worlds say of its first; None where there are none.

    A run that one of them did not bring to its end is compared with nothing: that is the reason.
    """
    if not first.again:
        return None
    replays = (first, *first.again)
    told = [asked.replayed or {} for asked in replays]
    broken = {run: why for replayed in told for run, why in _broken(replayed).items()}
    known = _broken(told[0])
    calls = [_calls(asked, rules, broken) for asked in replays]
    found = stability(calls[0], calls[1:])
    early = {
        run: f"replayed again, it did not come to its end: {why}"
        for run, why in broken.items()
        if run not in known
    }
    return replace(found, runs={**found.runs, **early})


def _broken(replayed: Mapping[str, RunReplayed]) -> dict[str, str]:
    return {
        name: run.not_replayable for name, run in replayed.items() if run.not_replayable is not None
    }


def _calls(asked: Asked, rules: Rules, broken: Mapping[str, str]) -> list[IntentCall]:
    whole = [intent for intent in asked.intents if intent.run not in broken]
    return key_intents(whole, rules, asked.keyed_under)[0]


def beside(found: Stability, base: Stability | None) -> Stability:
    """`found`, with what of it the base version's replays show as well.

    That is as often at the most, and from the same step on: chance in another step is news.
    """
    if base is None:
        return found
    known = {(one.tool, one.path): one for one in base.fields}
    fields = [
        replace(one, in_base=_has(known.get((one.tool, one.path)), one)) for one in found.fields
    ]
    return replace(found, fields=tuple(fields))


def _has(base: UnstableField | None, one: UnstableField) -> bool:
    return (
        base is not None
        and one.times <= base.times
        and (one.run, one.step) == (base.run, base.step)
    )


def explained(found: Stability | None, rules: Rules) -> Callable[[Divergence], bool]:
    """Tells the findings that rest on nothing but what `found` calls unstable."""
    if found is None:
        return lambda _: False
    return lambda one: found.explains(one, rules.judged(one.tool).identity)


def doubts(found: Stability | None, policy: Policy) -> list[str]:
    """Why a pass would not be honest, where replays do not agree.

    A field that could hide a finding of a blocking kind makes one, unless the base has it too:
    then it is no news.
    """
    if found is None:
        return []
    said = [f"run {run} is unstable: {why}" for run, why in sorted(found.runs.items())]
    if (more := len(said) - _LISTED) > 0:
        said[_LISTED:] = [f"{more} more runs are unstable"]
    hiding = [one for one in found.fields if one.in_base is not True and _may_hide(one, policy)]
    if hiding:
        names = ", ".join(f"{one.tool} {one.path}" for one in hiding[:_FIELDS_SHOWN])
        rest = f" and {len(hiding) - _FIELDS_SHOWN} more" if len(hiding) > _FIELDS_SHOWN else ""
        said.append(
            f"unstable where it could hide what blocks: {names}{rest}; what this version asks for "
            "there is chance"
        )
    return said


def _may_hide(one: UnstableField, policy: Policy) -> bool:
    return (Kind.DUPLICATE if one.names_target else Kind.MUTATED) in policy.fail_on
