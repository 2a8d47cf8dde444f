"""One agent judged: what went out, what is asked for, under whose rules (S2, D1, D3).

Pure: everything that had to be read or replayed is an argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import msgspec

from backstop.core import unshown, waivers
from backstop.core.covering import cover
from backstop.core.declaration import Declaration, Namespace, completed
from backstop.core.events import Header
from backstop.core.history import History
from backstop.core.intents import Intent, RunReplayed
from backstop.core.keying import Rules
from backstop.core.stability import Stability
from backstop.core.verdict import (
    AgentVerdict,
    Coverage,
    LedgerFacts,
    Policy,
    decide,
    doubting,
    worse,
)
from backstop.gate.comparing import Asked
from backstop.gate.control import weighed
from backstop.gate.escaping import not_covered, noted
from backstop.gate.lacking import Lacking, not_looked_for, telling
from backstop.gate.repeats import settled
from backstop.gate.stability import agreement, beside, doubts, explained
from backstop.gate.vanished import vanished


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A ledger as the gate needs it. `digest` is that of its bytes."""

    header: Header
    history: History
    digest: str

    @property
    def facts(self) -> LedgerFacts:
        """The counts that a verdict states."""
        return LedgerFacts(
            events=self.history.events,
            effects=self.history.committed,
            runs=len(self.history.runs),
            digest=f"sha256:{self.digest}",
        )


def judge(
    recorded: Recorded,
    candidate: Asked,
    *,
    control: Asked | Lacking = Lacking.UNNAMED,
    declarations: Sequence[Mapping[str, Declaration]],
    policies: Sequence[Policy],
    namespace: Namespace,
    guarded: bool,
    subtract: bool = True,
) -> AgentVerdict:
    """Judge a version; under several declarations or policies the worst stands (D1).

    `guarded` says that the guard ran in production. `control` is the base version's replay, or
    why there is none; with `subtract`, what it already does on rows of older versions is no fault
    of the candidate's (D3). What a version's replays in other worlds do not agree on is unstable.
    """
    base, _ = _apart(control)
    said = [candidate.said] if base is None else [base.said, candidate.said]
    stated = [_completed(recorded, *both) for both in product(declarations, said)]
    stands = _guarded(recorded.header, candidate, base) if guarded else frozenset()
    sets = _rule_sets(recorded, candidate, stated, namespace, guarded=stands)
    silent = _never_compared(recorded, sets)
    verdicts = [
        _judge(recorded, candidate, control, rules, policy, silent, subtract=subtract)
        for rules, policy in product(sets, policies)
    ]
    verdict = verdicts[0]
    for other in verdicts[1:]:
        verdict = worse(verdict, other)
    uses = waivers.merged(verdict.waivers, *(other.waivers for other in verdicts))
    return replace(verdict, waivers=uses, live=candidate.live)


def rule_sets(
    header: Header,
    head: Mapping[str, Declaration],
    base: Mapping[str, Declaration] | None,
) -> Sequence[Mapping[str, Declaration]]:
    """The declarations to judge under: the base's and the head's (D1).

    Where no base is at hand, the ledger says under which rules its rows were written: a
    pull request that edits a rule is judged under the written one too.
    """
    if base is not None:
        return (base, head)
    written = {
        tool: header.declarations[digest]
        for tool, digest in header.tools.items()
        if digest in header.declarations
    }
    return ({**head, **written}, head)


def _completed(
    recorded: Recorded, stated: Mapping[str, Declaration], said: Mapping[str, Declaration]
) -> Mapping[str, Declaration]:
    """What is stated of all tools, with what their code says where that is silent (D1).

    The record knows what the code said when it was written: today's word takes its place.
    """
    header = recorded.header
    written = {
        tool: header.declarations[digest]
        for tool, digest in header.tools.items()
        if digest in header.declarations and tool not in said
    }
    judged = {**written, **stated}
    for tool, code in said.items():
        judged[tool] = completed(judged.get(tool) or Declaration(tool=tool), code)
    return judged


def _rule_sets(
    recorded: Recorded,
    candidate: Asked,
    declarations: Sequence[Mapping[str, Declaration]],
    namespace: Namespace,
    *,
    guarded: frozenset[str],
) -> list[Rules]:
    """One set of rules for each different set of declarations."""
    header = recorded.header
    declared = {
        tool: header.declarations[digest]
        for tool, digest in header.tools.items()
        if digest in header.declarations
    }
    found: list[Rules] = []
    for stated in declarations:
        judged = _with_schemas({**declared, **stated}, candidate.schemas)
        rules = Rules(
            namespace=namespace,
            recorded={**candidate.declarations, **header.declarations},
            declared=declared,
            candidate=judged,
            offered=_offered(candidate),
            guarded=guarded,
            # Every guard looks calls up under all rules of its store (ADR 0020).
            finds_old_keys=guarded,
            replayed=candidate.replayed is not None,
            canon=header.canon,
        )
        if all(rules.candidate != other.candidate for other in found):
            found.append(rules)
    return found


def _guarded(header: Header, candidate: Asked, control: Asked | None) -> frozenset[str]:
    """The candidate's tools that the guard will stand before (G7).

    Where the guard wrote the record of a version whose code does not attach it, whoever starts
    that version does (``--extra_plugins``), and will for the next one.
    """
    if candidate.guarded or not header.guarded:
        return candidate.guarded
    known = candidate.version in header.versions if control is None else not control.guarded
    return (_offered(candidate) or frozenset()) if known else frozenset()


def _offered(candidate: Asked) -> frozenset[str] | None:
    return candidate.offered if candidate.schemas is None else frozenset(candidate.schemas)


def _known(candidate: Asked, rules: Rules) -> frozenset[str] | None:
    """The tools that the candidate has, by each name that they had; None where nobody can tell."""
    offered = _offered(candidate)
    if offered is None:
        return None
    return offered.union(*(rules.judged(tool).aliases for tool in offered))


def _with_schemas(
    declarations: Mapping[str, Declaration], schemas: Mapping[str, Mapping[str, object]] | None
) -> dict[str, Declaration]:
    """The rules of `declarations` on the parameters that the candidate's tools have."""
    judged = dict(declarations)
    for tool, schema in (schemas or {}).items():
        stated = judged.get(tool, Declaration(tool=tool))
        judged[tool] = Declaration(
            tool=tool,
            effect=stated.effect,
            identity=stated.identity,
            scope=stated.scope,
            fields=stated.fields,
            schema=dict(schema),
            occurrence=stated.occurrence,
            aliases=stated.aliases,
            key=stated.key,
        )
    return judged


def _judge(
    recorded: Recorded,
    candidate: Asked,
    control: Asked | Lacking,
    rules: Rules,
    policy: Policy,
    silent: Sequence[str],
    *,
    subtract: bool,
) -> AgentVerdict:
    base, lacking = _apart(control)
    comparison, disputed = settled(recorded.history, candidate, rules)
    usual, steady = _steadiness(candidate, base, rules)
    unsteady = doubts(steady, policy)
    coverage = doubting(
        _coverage(recorded, candidate, policy, lacking, agent=rules.namespace.agent),
        *silent,
        *unsteady,
        *disputed,
    )
    pre_existing: Counter[tuple[str, ...]] = Counter()
    if base is not None:
        chance = explained(usual, rules)
        pre_existing, unlike = weighed(
            recorded.history,
            base,
            rules,
            is_chance=lambda one: one.kind not in policy.fail_on and chance(one),
        )
        coverage = doubting(coverage, *unlike)
    verdict = decide(
        rules.namespace.agent,
        comparison,
        coverage,
        policy,
        ledger=recorded.facts,
        pre_existing=pre_existing if subtract else None,
        is_unstable=explained(steady, rules),
        notes=(
            *noted(candidate.escapes, policy),
            *vanished(recorded.history.rows, _known(candidate, rules)),
            *_unlooked(recorded, candidate, lacking),
        ),
    )
    if steady is None:
        return verdict
    return replace(verdict, replays=1 + len(candidate.again), unstable=steady.fields)


def _steadiness(
    candidate: Asked, control: Asked | None, rules: Rules
) -> tuple[Stability | None, Stability | None]:
    """What replays in other worlds say of the base and of the candidate; None without any."""
    base = None if control is None else agreement(control, rules)
    found = agreement(candidate, rules)
    return base, None if found is None else beside(found, base)


def _unlooked(recorded: Recorded, candidate: Asked, lacking: Lacking | None) -> tuple[str, ...]:
    """What the verdict on a replayed version did not look for, having nothing to compare (D7)."""
    wrote = {row.v for row in recorded.history.rows}
    if lacking is None or candidate.replayed is None or wrote <= {candidate.version}:
        return ()
    return (not_looked_for(lacking),)


def _apart(control: Asked | Lacking) -> tuple[Asked | None, Lacking | None]:
    """The base version's replay, and why there is none: one of the two."""
    return (None, control) if isinstance(control, Lacking) else (control, None)


def _coverage(
    recorded: Recorded, candidate: Asked, policy: Policy, lacking: Lacking | None, *, agent: str
) -> Coverage:
    runs = recorded.history.runs
    gaps = tuple(map(unshown.gap, dict.fromkeys(recorded.header.gaps or ())))
    told = candidate.spoken if candidate.replayed is None else candidate.replayed
    if told is None:
        covered = Coverage(runs_compared=len(runs), runs_total=len(runs))
    else:
        covered = cover(_admitting(told, candidate.intents), runs)
    past = (*candidate.uncovered, *not_covered(candidate.escapes, policy))
    return replace(
        covered,
        telling=telling(lacking) if covered.drift == "unknown" else "",
        uncovered=(*past, *(one.told for one in gaps)),
        unshown=unshown.found(agent, (*candidate.unshown, *gaps)),
    )


def _admitting(
    told: Mapping[str, RunReplayed], intents: Sequence[Intent]
) -> Mapping[str, RunReplayed]:
    """How far each run can be spoken for, by the worst that its own row and its intents say.

    What is assumed blocks nothing and is not MISSING, so it must never be counted as compared.
    """
    steps: dict[str, set[str]] = {}
    for intent in intents:
        if intent.assumed:
            steps.setdefault(intent.run, set()).add(intent.step)
    return {
        name: msgspec.structs.replace(
            run,
            steps_assumed=max(
                run.steps_assumed, len(steps.get(name, ())), int(run.assumed_from is not None)
            ),
        )
        for name, run in told.items()
    }


def _never_compared(recorded: Recorded, sets: Sequence[Rules]) -> list[str]:
    """Tools of which the record and every set of rules speak differently: effect, or read.

    A row stands in the record as one of the two. Under rules that say the other, its calls are
    on one side of the comparison only, or on neither.
    """
    effects = Counter(row.tool for row in recorded.history.rows)
    doubts = [
        f"{tool}: {count} calls were recorded as effects, and it is declared a read: they were "
        "compared with nothing; declare it an effect, or record and import anew"
        for tool, count in sorted(effects.items())
        if not any(rules.judged(tool).effect for rules in sets)
    ]
    reads = {one.tool for one in recorded.header.declarations.values() if not one.effect}
    return doubts + [
        f"{tool}: its calls were recorded as reads, and it is declared an effect: they were "
        "compared with nothing; record and import them anew"
        for tool in sorted(reads)
        if any(rules.judged(tool).effect for rules in sets)
    ]
