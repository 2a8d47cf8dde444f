"""What people accepted of one agent, and what that does to findings: baseline first, then waivers.

Of coverage, waivers make up for changes and gaps that they name by fingerprint, and for nothing
else: what could not be compared stays inconclusive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from backstop.core import baseline as baselines
from backstop.core import waivers
from backstop.core.baseline import AgentBaseline, BaselineUse
from backstop.core.divergence import Divergence
from backstop.core.waivers import MAX_DAYS, Standing, Waiver, WaiverUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What counts for one agent on the day `today` (UTC).

    `added` is how many findings the pull request itself puts into the baseline. Where `strict`
    (``gate.waivers: base``) `waivers` and `baseline` are those of the base; what the pull
    request adds, `proposed` waivers among it, is reported and counts for nothing.
    """

    today: date
    waivers: tuple[Waiver, ...] = ()
    proposed: tuple[Waiver, ...] = ()
    baseline: AgentBaseline | None = None
    added: int = 0
    strict: bool = False
    max_days: int = MAX_DAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What was done: places of findings that are `known` or `waived`, and how it is told.

    `unshown` are changes and gaps that are waived, by fingerprint.
    """

    known: frozenset[int] = frozenset()
    waived: Mapping[int, Waiver] = field(default_factory=dict)
    unshown: Mapping[str, Waiver] = field(default_factory=dict)
    waivers: tuple[WaiverUse, ...] = ()
    baseline: BaselineUse | None = None


def accept(
    divergences: Sequence[Divergence],
    standing: Sequence[int],
    accepted: Accepted,
    *,
    unspoken: Iterable[str],
    unshown: Mapping[str, int],
) -> Acceptance:
    """Which findings are known or waived, by their place in `divergences`.

    Only those whose places are `standing` use anything up: the others do not count already.
    `unspoken` are runs of which nothing can be said, `unshown` the fingerprints of what no replay
    shows, with how many places each stands for.
    """
    among = [divergences[place] for place in standing]
    met = set() if accepted.baseline is None else baselines.met(accepted.baseline, among)
    rest = sorted(set(range(len(divergences))) - set(standing))
    covered, uses = waivers.apply(
        accepted.waivers,
        among,
        known=met,
        tempered=[divergences[place] for place in rest],
        unshown=unshown,
        today=accepted.today,
        max_days=accepted.max_days,
    )
    return Acceptance(
        known=frozenset(standing[at] for at in met),
        waived={standing[at]: waiver for at, waiver in covered.items()},
        unshown={
            name: use.waiver
            for use in reversed(uses)
            if use.standing is Standing.USED
            for name in unshown
            if use.waiver.accepts(name)
        },
        waivers=(*uses, *_not_counted(accepted, divergences, unshown)),
        baseline=_told(accepted, divergences, len(met), unspoken),
    )


def _not_counted(
    accepted: Accepted, divergences: Sequence[Divergence], unshown: Iterable[str]
) -> tuple[WaiverUse, ...]:
    return tuple(
        WaiverUse(
            waiver=waiver,
            standing=Standing.NOT_COUNTED,
            matched=sum(map(waiver.matches, divergences)) + sum(map(waiver.accepts, unshown)),
            note="comes with this change: it counts once it is on the base (gate.waivers)",
        )
        for waiver in accepted.proposed
    )


def _told(
    accepted: Accepted,
    divergences: Sequence[Divergence],
    known: int,
    unspoken: Iterable[str],
) -> BaselineUse | None:
    held = accepted.baseline
    if held is None and not accepted.added:
        return None
    return BaselineUse(
        date="" if held is None else baselines.day(held),
        by="" if held is None else held.by,
        ledger="" if held is None else held.ledger,
        findings=baselines.counts(held).total(),
        known=known,
        gone=0 if held is None else baselines.gone(held, divergences, unspoken),
        added=accepted.added,
        counted=not accepted.strict,
    )
