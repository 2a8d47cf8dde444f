"""From what was found to what is decided: policy, coverage, decision (design.md 9, D1-D7).

The order is: BLOCK if something of a blocking kind stands; else INCONCLUSIVE if the replay
could not speak for the whole ledger; else PASS. More findings, or less coverage, never
soften a decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from backstop.core.accepted import Acceptance, Accepted, accept
from backstop.core.baseline import BaselineUse
from backstop.core.canon import canonical, digest
from backstop.core.divergence import Comparison, Divergence, Kind
from backstop.core.drift import changes
from backstop.core.spending import LiveUse
from backstop.core.stability import UnstableField
from backstop.core.unshown import UnshownFinding, not_covered
from backstop.core.waivers import Waiver, WaiverUse


class Decision(StrEnum):
    """What the gate answers."""

    PASS = "PASS"  # noqa: S105  # a decision, no password
    BLOCK = "BLOCK"
    INCONCLUSIVE = "INCONCLUSIVE"


EXIT_CODES: Final[Mapping[Decision, int]] = {
    Decision.PASS: 0,
    Decision.BLOCK: 1,
    Decision.INCONCLUSIVE: 3,
}
"""The same for the command line and the action; 2 is for errors."""

_SEVERITY: Final = (Decision.PASS, Decision.INCONCLUSIVE, Decision.BLOCK)


def worst(decisions: Sequence[Decision]) -> Decision:
    """The worst of several decisions: BLOCK, then INCONCLUSIVE, then PASS (D5)."""
    return max(decisions, key=_SEVERITY.index, default=Decision.INCONCLUSIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What blocks, and how much may stay unknown.

    `accepts` are ways past interception that may stay uncovered, by name.
    `max_assumed_steps` counts steps over all runs. `allow_empty` lets a ledger with no run,
    or a comparison with none, pass: for the change that introduces Backstop. `accepted` is
    what does not block although its kind does; of coverage it makes up for nothing but changes and
    gaps that it names by their fingerprints (D4).
    """

    fail_on: frozenset[Kind] = frozenset({Kind.DUPLICATE})
    max_assumed_steps: int = 0
    allow_empty: bool = False
    accepts: frozenset[str] = frozenset()
    accepted: Accepted | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the ledger the comparison could speak for.

    `steps_lost` are those of runs that were not replayed to their end, as far as they are not
    assumed. `drift` is ``none``, ``drifted`` or ``unknown``, and `telling` what would tell where
    it is unknown; `drifted` names request parts by agent. `not_replayable` maps runs to why they
    could not be replayed to their end; `uncovered` names what a replay cannot exercise, `unshown`
    those of it that a person may accept. `doubts` are further reasons why a PASS would be a lie.
    """

    runs_compared: int = 0
    runs_total: int = 0
    steps_total: int = 0
    steps_assumed: int = 0
    steps_lost: int = 0
    drift: str = "none"
    telling: str = ""
    drifted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    not_replayable: Mapping[str, str] = field(default_factory=dict)
    uncovered: tuple[str, ...] = ()
    unshown: tuple[UnshownFinding, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def steps_covered(self) -> int:
        """The steps that the record vouches for: neither assumed nor lost."""
        return max(0, self.steps_total - self.steps_assumed - self.steps_lost)

    @property
    def accepted(self) -> int:
        """How many places that no replay shows a person accepted."""
        return sum(one.places for one in self.unshown if one.waiver is not None)

    @property
    def changed(self) -> str:
        """Which parts of requests changed, in words: ``instruction changed in 2 agents``."""
        return changes(self.drifted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A divergence with what tempers it.

    It may be there in the base version too (D3), be `known` of the baseline, or be waived for
    the reason that `waiver` gives. An `unstable` one rests on nothing but what comes out
    otherwise in each replay: it is nobody's fault, and no pass.
    """

    divergence: Divergence
    pre_existing: bool = False
    waiver: str | None = None
    known: bool = False
    unstable: bool = False

    def blocks(self, policy: Policy) -> bool:
        """Does this finding stop the deploy?"""
        return (
            self.divergence.kind in policy.fail_on
            and not self.divergence.assumed
            and not self.unstable
            and not self.is_tempered
        )

    @property
    def is_tempered(self) -> bool:
        """Is it let pass for what is known of it, whatever the policy says?"""
        return self.pre_existing or self.known or self.waiver is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFacts:
    """Which ledger was compared: counts and the digest of its bytes."""

    events: int = 0
    effects: int = 0
    runs: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentVerdict:
    """One agent's decision with all that it rests on; `why` names what it turned on.

    A `neutral` agent is new and has nothing to be judged by: it does not count (D5). `waivers`
    are all that were weighed, used or not; `baseline` is None where the agent has none.
    `replays` is how often the version was replayed, and `unstable` what came out otherwise. `live`
    tells of a live model that could be asked, and what it has cost.
    """

    agent: str
    decision: Decision
    ledger: LedgerFacts
    coverage: Coverage
    counts: Mapping[str, int]
    judged: tuple[Judged, ...]
    why: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    neutral: bool = False
    waivers: tuple[WaiverUse, ...] = ()
    baseline: BaselineUse | None = None
    replays: int = 1
    live: LiveUse | None = None
    unstable: tuple[UnstableField, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdicts of all agents; the worst decides (D5)."""

    agents: tuple[AgentVerdict, ...]

    @property
    def decision(self) -> Decision:
        """The worst decision; INCONCLUSIVE where no agent was judged."""
        return worst([agent.decision for agent in self.agents if not agent.neutral])

    @property
    def exit_code(self) -> int:
        """0 PASS, 1 BLOCK, 3 INCONCLUSIVE."""
        return EXIT_CODES[self.decision]


def decide(
    agent: str,
    comparison: Comparison,
    coverage: Coverage,
    policy: Policy,
    *,
    ledger: LedgerFacts,
    pre_existing: Counter[tuple[str, ...]] | None = None,
    is_unstable: Callable[[Divergence], bool] | None = None,
    notes: tuple[str, ...] = (),
) -> AgentVerdict:
    """Decide for one agent.

    `pre_existing` counts what a control run found on rows of older versions, by
    `identity_of`; each takes the edge off one equal finding of the candidate (D3).
    `is_unstable` tells findings that rest on nothing but what differs between replays.
    """
    judged, acceptance = _tempered(comparison.divergences, coverage, pre_existing, policy.accepted)
    coverage = _accepting(coverage, acceptance)
    if is_unstable is not None:
        judged = tuple(replace(one, unstable=is_unstable(one.divergence)) for one in judged)
    why = [*_blocking(judged, policy)]
    decision = Decision.BLOCK if why else Decision.PASS
    if decision is Decision.PASS:
        why = [*_gaps(comparison, coverage, policy), *_unstable(judged, policy)]
        decision = Decision.INCONCLUSIVE if why else Decision.PASS
    return AgentVerdict(
        agent=agent,
        decision=decision,
        ledger=ledger,
        coverage=coverage,
        counts=counts_of(comparison, judged),
        judged=judged,
        why=tuple(why),
        notes=notes,
        waivers=acceptance.waivers,
        baseline=acceptance.baseline,
    )


def identity_of(divergence: Divergence) -> tuple[str, ...]:
    """What makes two findings one: kind, recorded key, intended key, intended fingerprint."""
    recorded, intended = divergence.recorded, divergence.intended
    return (
        divergence.kind.value,
        "" if recorded is None else recorded.key,
        "" if intended is None else intended.key,
        "" if intended is None else intended.fingerprint,
    )


def _tempered(
    divergences: Sequence[Divergence],
    coverage: Coverage,
    pre_existing: Counter[tuple[str, ...]] | None,
    accepted: Accepted | None,
) -> tuple[tuple[Judged, ...], Acceptance]:
    left = Counter(pre_existing or {})
    judged = [_temper(divergence, left) for divergence in divergences]
    if accepted is None:
        return tuple(judged), Acceptance()
    standing = [
        place
        for place, one in enumerate(judged)
        if not one.pre_existing and not one.divergence.assumed
    ]
    acceptance = accept(
        divergences,
        standing,
        accepted,
        unspoken=coverage.not_replayable,
        unshown={one.fingerprint: one.places for one in coverage.unshown},
    )
    for place in acceptance.known:
        judged[place] = replace(judged[place], known=True)
    for place, waiver in acceptance.waived.items():
        judged[place] = replace(judged[place], waiver=_said(waiver))
    return tuple(judged), acceptance


def _accepting(coverage: Coverage, acceptance: Acceptance) -> Coverage:
    said = {name: _said(waiver) for name, waiver in acceptance.unshown.items()}
    found = tuple(replace(one, waiver=said.get(one.fingerprint)) for one in coverage.unshown)
    return replace(coverage, unshown=found)


def _temper(divergence: Divergence, left: Counter[tuple[str, ...]]) -> Judged:
    name = identity_of(divergence)
    known = left[name] > 0
    if known:
        left[name] -= 1
    return Judged(divergence=divergence, pre_existing=known)


def _said(waiver: Waiver) -> str:
    return f"{waiver.reason} ({waiver.author}, until {waiver.expires})"


def _blocking(judged: Sequence[Judged], policy: Policy) -> list[str]:
    kinds = Counter(one.divergence.kind for one in judged if one.blocks(policy))
    return [f"{kinds[kind]} {kind.value}" for kind in Kind if kinds[kind]]


def _gaps(comparison: Comparison, coverage: Coverage, policy: Policy) -> list[str]:
    """Why a pass would not be honest, what keeps most from being compared first."""
    gaps = [*_not_compared(coverage, policy)]
    if coverage.steps_assumed > policy.max_assumed_steps:
        silent = f": the ledger does not say what its models were asked; {coverage.telling}"
        gaps.append(
            f"{coverage.steps_assumed} of {coverage.steps_total} steps are assumed "
            f"({coverage.changed or f'drift {coverage.drift}'}), "
            f"{policy.max_assumed_steps} allowed{silent if coverage.telling else ''}"
        )
    gaps += [f"run {run}: {why}" for run, why in sorted(comparison.regrouped.items())]
    gaps += [
        f"{call.tool} in run {call.run}, step {call.step} has no key: {call.why}"
        for call in comparison.unkeyed
    ]
    accepted = Counter(one.told for one in coverage.unshown if one.waiver is not None)
    for what in coverage.uncovered:
        if accepted[what] > 0:  # one line each: what else has the same words still counts
            accepted[what] -= 1
        else:
            gaps.append(not_covered(what))
    return [*gaps, *coverage.doubts]


def _not_compared(coverage: Coverage, policy: Policy) -> Iterator[str]:
    """Which runs could not be compared, and why."""
    if coverage.runs_total == 0 and not policy.allow_empty:
        yield "nothing was compared; --allow-empty accepts that for a first ledger"
    if (unreplayed := len(coverage.not_replayable)) > 0:
        run, reason = next(iter(sorted(coverage.not_replayable.items())))
        more = f", and {unreplayed - 1} more" if unreplayed > 1 else ""
        so = "; so nothing was compared" if coverage.runs_compared == 0 else ""
        yield f"run {run} was not replayed to its end: {reason}{more}{so}"
    elif coverage.runs_compared < coverage.runs_total:
        yield f"only {coverage.runs_compared} of {coverage.runs_total} runs were compared"


def _unstable(judged: Sequence[Judged], policy: Policy) -> list[str]:
    """What would block if it were not for what differs between replays: no pass either."""
    kinds = Counter(
        one.divergence.kind
        for one in judged
        if one.unstable and replace(one, unstable=False).blocks(policy)
    )
    return [
        f"{kinds[kind]} {kind.value} in nothing but what comes out otherwise in each replay: "
        "nobody can tell what this version would do there"
        for kind in Kind
        if kinds[kind]
    ]


def counts_of(comparison: Comparison, judged: Sequence[Judged]) -> dict[str, int]:
    """The counts of a verdict, in the order in which they are printed."""
    return {
        "match": comparison.matched,
        "duplicate": comparison.count(Kind.DUPLICATE),
        "mutated": comparison.count(Kind.MUTATED),
        "missing": comparison.count(Kind.MISSING),
        "extra": comparison.count(Kind.EXTRA),
        "absorbed": comparison.absorbed,
        "in_doubt": comparison.in_doubt,
        "failed": comparison.failed,
        "recorded_twice": comparison.recorded_twice,
        "assumed": sum(one.divergence.assumed for one in judged),
        "waived": sum(one.waiver is not None for one in judged),
        "pre_existing": sum(one.pre_existing for one in judged),
        "known": sum(one.known for one in judged),
        "unstable": sum(one.unstable for one in judged),
    }


def doubting(coverage: Coverage, *doubts: str) -> Coverage:
    """The same coverage with further reasons for doubt."""
    return replace(coverage, doubts=(*coverage.doubts, *doubts))


def worse(one: AgentVerdict, other: AgentVerdict) -> AgentVerdict:
    """The worse of two verdicts on one agent (D1); of equals the one with more findings."""

    def rank(verdict: AgentVerdict) -> tuple[int, int]:
        return _SEVERITY.index(verdict.decision), len(verdict.judged)

    return other if rank(other) > rank(one) else one


_ANY_SIZE: Final = 1 << 62
"""A verdict is ours: however long, it has a digest."""


def content_digest(body: object) -> str:
    """``sha256:`` digest of a verdict's canonical body (everything but the timings)."""
    return f"sha256:{digest(canonical(body, size=_ANY_SIZE))}"
