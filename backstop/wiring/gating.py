"""The gate and the replay, put together from a configuration.

Reads files, starts sandboxes, and hands values to services that know nothing of either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from functools import partial
from pathlib import Path
from time import perf_counter

from backstop.clock import SystemClock
from backstop.core import intentsfile
from backstop.core.declaration import Namespace
from backstop.core.divergence import Kind
from backstop.core.ledgerfile import Ledger
from backstop.core.verdict import (
    AgentVerdict,
    Coverage,
    Decision,
    LedgerFacts,
    Policy,
    Verdict,
)
from backstop.errors import ConfigError
from backstop.gate.cached import secret_from
from backstop.gate.diff import recorded
from backstop.gate.judge import judge, rule_sets
from backstop.gate.lacking import Lacking
from backstop.gate.request import GateRequest, Judgement, ReplayRequest, Written
from backstop.ports import Clock
from backstop.replay.service import Progress
from backstop.wiring.accepting import Accepting, accepting
from backstop.wiring.caching import CACHE_KEY, Replays, cache_of
from backstop.wiring.checkouts import changes
from backstop.wiring.jobs import Job, configured, job_of, judged
from backstop.wiring.living import Models, models_of
from backstop.wiring.replaying import asked, replays
from backstop.wiring.sandboxes import Say, Shelf
from backstop.wiring.snapshot import NoLedger, snapshot


class _Watch:
    """Milliseconds by phase."""

    def __init__(self) -> None:
        self.spent = {"load": 0.0, "replay": 0.0, "verdict": 0.0}
        self._since = perf_counter()

    def lap(self, phase: str) -> float:
        """What passed since the last lap belongs to `phase`; how much that was."""
        now = perf_counter()
        passed = 1000 * (now - self._since)
        self.spent[phase] += passed
        self._since = now
        return passed


class _Rounds:
    """One account of how far several replays of equal length are."""

    def __init__(self, progress: Progress | None, rounds: int) -> None:
        self._progress = progress
        self._rounds = rounds

    def of(self, number: int) -> Progress | None:
        """What the replay of that number tells of itself."""
        progress = self._progress
        if progress is None or self._rounds == 1:
            return progress
        return lambda done, total: progress(number * total + done, self._rounds * total)


def gate(
    request: GateRequest,
    *,
    progress: Progress | None = None,
    say: Say | None = None,
    clock: Clock | None = None,
) -> Judgement:
    """Replay the candidates of a configuration, and judge them.

    `progress` is told of runs, `say` of what takes long before any can be replayed. Raises
    `BackstopError` where the work cannot be done: exit code 2.
    """
    watch = _Watch()
    config, base_config = configured(request.replay)
    agents, gone = judged(request.replay, config, base_config)
    accepts = accepting(config, base_config)
    several = len(agents) > 1
    jobs = [job_of(request.replay, config, base_config, one, several=several) for one in agents]
    watch.lap("load")
    play = partial(replays, say=say, withheld=_withheld(request), shelf=_shelf(request))
    shown = _Rounds(progress, request.repeat)
    with models_of(request.replay) as models:
        sitting = _Sitting(request, watch, play, shown, clock or SystemClock(), accepts, models)
        verdicts = [sitting.on(job) for job in jobs]
    if request.replay.agent is None:
        verdicts += sitting.unheard(config.agents.keys() - {one.name for one in agents})
    verdicts += [
        _unjudged(name, Decision.INCONCLUSIVE, "its entry in the configuration vanished")
        for name in gone
    ]
    return Judgement(
        verdict=Verdict(agents=tuple(verdicts)),
        timing_ms=watch.spent,
        ledgers=sitting.ledgers,
        remarks=tuple(sitting.remarks),
        carried=tuple(sitting.carried),
    )


class _Sitting:
    """One gate: judges agents in turn, and keeps what belongs to none of their verdicts."""

    def __init__(
        self,
        request: GateRequest,
        watch: _Watch,
        play: Callable[..., Replays],
        shown: _Rounds,
        clock: Clock,
        accepts: Accepting,
        models: Models,
    ) -> None:
        self._request = request
        self._watch = watch
        self._play = play
        self._shown = shown
        self._now = clock.now()
        self._accepts = accepts
        self._models = models
        self._today = self._now.astimezone(UTC).date()
        self._cache = cache_of(request, self._today)
        self._changes = changes(request.replay, request.cache_dir) if request.changed_only else {}
        self._remarks = _about(request, self._changes)
        self.ledgers: dict[str, str] = {}
        self.carried: list[str] = []

    @property
    def remarks(self) -> list[str]:
        """How the verdicts came about."""
        cached = () if self._cache is None else self._cache.remarks
        return [*self._remarks, *self._models.remarks, *cached]

    def on(self, job: Job) -> AgentVerdict:
        """The verdict on one agent."""
        if (carried := self._untouched(job)) is not None:
            self.carried.append(job.agent.name)
            return carried
        request, watch = self._request, self._watch
        accepted = self._accepts.of(job.agent.name, today=self._today)
        policies = [
            replace(policy, accepted=accepted)
            for policy in job.policies(fail_on=request.fail_on, allow_empty=request.allow_empty)
        ]
        found = snapshot(
            job,
            now=self._now,
            allow_empty=all(policy.allow_empty for policy in policies),
            ancestors=request.replay.ancestors,
        )
        if isinstance(found, NoLedger):
            return _without_ledger(job.agent.name, found, policies)
        self.ledgers[job.agent.name] = found.origin
        watch.lap("load")
        verdict = self._judged(job, found.ledger, policies)
        return replace(verdict, notes=(*verdict.notes, *found.notes))

    def unheard(self, names: Collection[str]) -> list[AgentVerdict]:
        """Of agents without a ledger those that the change concerns: that touches somebody."""
        why = "it has no ledger: nothing of it is judged"
        return [
            _unjudged(name, Decision.PASS, why, neutral=True)
            for name in sorted(names)
            if not isinstance(self._changes, str) and name in self._changes
        ]

    def _judged(self, job: Job, ledger: Ledger, policies: Sequence[Policy]) -> AgentVerdict:
        control, candidate = self._replayed(job, ledger, world=0)
        self._watch.lap("replay")
        again = self._again(job, ledger)
        controls = [base for base, _ in again if base is not None]
        verdict = judge(
            recorded(ledger),
            asked(candidate, again=[other for _, other in again]),
            control=_lacking(self._request.replay, job)
            if control is None
            else asked(control, again=controls),
            declarations=rule_sets(ledger.header, job.agent.declarations, job.base_declarations),
            policies=policies,
            namespace=_namespace(job, ledger),
            guarded=job.guarded,
            subtract=self._request.subtract,
        )
        self._watch.lap("verdict")
        # Other worlds may have asked more than the first replay.
        live = self._models.of(job, ledger)
        if live is None:
            return verdict
        notes = (*verdict.notes, *self._models.notes(job))
        return replace(verdict, live=live.use, notes=notes)

    def _replayed(self, job: Job, ledger: Ledger, *, world: int) -> Replays:
        live = self._models.of(job, ledger)
        shown = self._shown.of(world)
        play = partial(self._play, job, ledger, world=world, live=live, progress=shown)
        if self._cache is None or live is not None:
            return play()  # what a live model answers is kept on a cassette, or not at all
        return self._cache.get(job, ledger, play, world=world)

    def _again(self, job: Job, ledger: Ledger) -> list[Replays]:
        """The replays in other worlds, and a remark on what they took."""
        found = [
            self._replayed(job, ledger, world=world) for world in range(1, self._request.repeat)
        ]
        if found:
            spent = self._watch.lap("replay")
            times = "once more" if len(found) == 1 else f"{len(found)} more times"
            self._remarks.append(
                f"{job.agent.name}: replayed {times} with another clock and chance, in "
                f"{spent / 1000:.1f} s"
            )
        return found

    def _untouched(self, job: Job) -> AgentVerdict | None:
        """The verdict on an agent that the change does not concern; None on one to be judged.

        One that nothing was ever held against is judged, and found to be no pass (G12).
        """
        if not self._request.changed_only or isinstance(self._changes, str):
            return None
        base = job.base_agent
        if job.agent.name in self._changes or base is None or base.ledger is None:
            return None
        facts = LedgerFacts()
        if "://" not in base.ledger:
            found = snapshot(job, now=self._now)
            if isinstance(found, NoLedger) or not found.ledger.events:
                return None
            facts = recorded(found.ledger).facts
        why = "carried forward: the change concerns nothing that this agent is made of"
        return replace(_unjudged(job.agent.name, Decision.PASS, why), ledger=facts)


def _lacking(request: ReplayRequest, job: Job) -> Lacking:
    """Why no version that runs now is replayed, where none is."""
    known = job.base_agent
    if request.base is None or (known is not None and known.path is None):
        return Lacking.UNNAMED
    return Lacking.NEW if job.ruling.gate.control == "base" else Lacking.OFF


def _withheld(request: GateRequest) -> list[Path]:
    """What no candidate may see: old entries tell what is in the ledger, answers what comes."""
    return [one for one in (request.cache_dir, request.replay.cassette) if one is not None]


def _shelf(request: GateRequest) -> Shelf | None:
    """Where candidates' packages are kept, if they can be sealed."""
    if request.cache_dir is None or not request.cache_key:
        return None
    secret = secret_from(request.cache_key)
    return Shelf(folder=request.cache_dir / "layers", secret=secret.value)


def _about(request: GateRequest, found: Mapping[str, str] | str) -> list[str]:
    """What is to be said of the change, and of a cache that cannot be used."""
    remarks: list[str] = []
    if isinstance(found, str):
        remarks.append(f"every agent was judged: {found}")
    else:
        remarks += [f"{agent}: concerned, since {why}" for agent, why in sorted(found.items())]
    if request.cache_dir is not None and not request.cache_key:
        remarks.append(
            f"nothing was cached: {CACHE_KEY} is not set (in the action: cache-secret), and what "
            "has no seal would be anybody's word"
        )
    return remarks


def replay(
    request: ReplayRequest,
    *,
    progress: Progress | None = None,
    say: Say | None = None,
    clock: Clock | None = None,
) -> Written:
    """Replay a candidate, and give the sealed intents file of what it asked for.

    Raises `BackstopError` where the work cannot be done: exit code 2.
    """
    config, base_config = configured(request)
    job = job_of(request, config, base_config, config.agent(request.agent))
    now = (clock or SystemClock()).now()
    found = snapshot(job, now=now, ancestors=request.ancestors)
    if isinstance(found, NoLedger):
        raise ConfigError(f"agent {job.agent.name}: {found.why}", slug="config-agent")
    with models_of(request) as models:
        live = models.of(job, found.ledger)
        _, candidate = replays(job, found.ledger, live=live, progress=progress, say=say)
    return Written(
        data=intentsfile.write(candidate.header, (*candidate.intents, *candidate.runs)),
        intents=len(candidate.intents),
        runs_replayed=sum(run.not_replayable is None for run in candidate.runs),
        runs_total=len(candidate.runs),
        calls=0 if live is None else live.use.calls,
    )


def _without_ledger(agent: str, found: NoLedger, policies: Sequence[Policy]) -> AgentVerdict:
    """The verdict on an agent that has no ledger to be judged by (D5)."""
    allowed = not found.vanished and all(policy.allow_empty for policy in policies)
    passes = found.is_new or allowed
    return _unjudged(
        agent,
        Decision.PASS if passes else Decision.INCONCLUSIVE,
        found.why,
        neutral=found.is_new and not allowed,
    )


def _unjudged(name: str, decision: Decision, why: str, *, neutral: bool = False) -> AgentVerdict:
    return AgentVerdict(
        agent=name,
        decision=decision,
        ledger=LedgerFacts(),
        coverage=Coverage(),
        counts=dict.fromkeys(("match", *(kind.lower() for kind in Kind)), 0),
        judged=(),
        why=(why,),
        neutral=neutral,
    )


def _namespace(job: Job, ledger: Ledger) -> Namespace:
    """Whose keys these are: the ledger says, and the configuration must not say otherwise."""
    header, said = ledger.header, job.agent.namespace
    if (said.app and said.app != header.app) or (said.tenant and said.tenant != header.tenant):
        raise ConfigError(
            f"{job.config.file}: agent {said.agent} is app {said.app!r}, tenant {said.tenant!r}, "
            f"its ledger was written for app {header.app!r}, tenant {header.tenant!r}: other "
            "names give other keys; correct the one that is wrong",
            slug="config-namespace",
        )
    return Namespace(agent=header.agent, app=header.app, tenant=header.tenant)
