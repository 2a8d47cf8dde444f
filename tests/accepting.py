"""What people accepted, in a few words, for tests of waivers and baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

from backstop.core.accepted import Accepted
from backstop.core.baseline import AgentBaseline, Known, taken
from backstop.core.divergence import Comparison, Divergence, Kind
from backstop.core.unshown import Lack
from backstop.core.verdict import AgentVerdict, Coverage, LedgerFacts, Policy, decide
from backstop.core.waivers import ByFingerprint, Names, Standing, Waiver
from tests.comparing import NAMESPACE

TODAY = date(2026, 11, 30)
NOW = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
UNTIL = date(2026, 12, 14)
WHOLE = Coverage(runs_compared=2, runs_total=2)
ALL = frozenset(Kind)


def waiver(
    names: str | Names | Divergence,
    *,
    kind: Kind | Lack | None = None,
    count: int = 1,
    expires: date = UNTIL,
    agent: str = NAMESPACE.agent,
) -> Waiver:
    """A waiver of a fingerprint, of a finding, or of what else it may name."""
    if isinstance(names, Divergence):
        names = names.fingerprint
    return Waiver(
        names=ByFingerprint(fingerprint=names) if isinstance(names, str) else names,
        agent=agent,
        reason="agreed",
        author="eva",
        expires=expires,
        kind=kind,
        count=count,
    )


def known(divergence: Divergence, *, count: int = 1) -> Known:
    """A finding as a baseline has it."""
    return Known(
        fingerprint=divergence.fingerprint,
        count=count,
        kind=divergence.kind.value,
        tool=divergence.tool,
        run=divergence.run,
        step=divergence.step,
    )


def baseline(found: Sequence[Divergence]) -> AgentBaseline:
    """A baseline of these findings."""
    return taken(map(known, found), at=NOW, by="eva", ledger="sha256:ab")


def decided(
    comparison: Comparison | Sequence[Divergence],
    *waivers: Waiver,
    held: AgentBaseline | None = None,
    coverage: Coverage = WHOLE,
    today: date = TODAY,
    fail_on: frozenset[Kind] = ALL,
) -> AgentVerdict:
    """The decision on these findings with what is accepted."""
    if not isinstance(comparison, Comparison):
        comparison = Comparison(divergences=tuple(comparison))
    accepted = Accepted(today=today, waivers=waivers, baseline=held)
    policy = replace(Policy(fail_on=fail_on), accepted=accepted)
    return decide("procure", comparison, coverage, policy, ledger=LedgerFacts())


def standings(verdict: AgentVerdict) -> list[Standing]:
    """What became of each waiver."""
    return [use.standing for use in verdict.waivers]
