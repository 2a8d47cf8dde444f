"""What a live model had to do with a verdict, in words that every report shares."""

from __future__ import annotations

from collections.abc import Callable

from backstop.core.spending import LiveUse
from backstop.core.verdict import Verdict
from backstop.reports.explain import as_it_is, count_of

_MAX_NAMES = 5
_DIGEST = 19


def model_calls(verdict: Verdict) -> str:
    """``0 model calls``: what the answers behind the verdict have cost, of all its agents."""
    uses = [agent.live for agent in verdict.agents if agent.live is not None]
    return count_of(sum(use.calls for use in uses), "model call")


def spent(use: LiveUse, spell: Callable[[str], str] = as_it_is) -> str:
    """What was asked and spent, in one line. `spell` escapes names of models."""
    if not use.calls:
        return "live model: not asked"
    tokens = f"{use.tokens_in:,} tokens in, {use.tokens_out:,} out"
    calls = f"{count_of(use.calls, 'call')}, {tokens}, in {count_of(use.runs, 'run')}"
    told = [f"live model {_named(use.models, spell)}: {calls}"]
    if use.repeats > 1:
        told.append(f"{use.repeats} repeats, {use.agreement} have to agree")
    if use.unusual:
        told.append(f"the base does not ask {_named(use.unusual, spell)}")
    told.append(f"answers {use.answers[:_DIGEST]}")
    return "; ".join(told)


def _named(models: tuple[str, ...], spell: Callable[[str], str]) -> str:
    more = f" and {len(models) - _MAX_NAMES} more" if len(models) > _MAX_NAMES else ""
    return ", ".join(spell(model) for model in models[:_MAX_NAMES]) + more
