"""The gate and the replay, put together from a configuration.

Reads files, starts sandboxes, and hands values to services that know nothing of either.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Final

from backstop.adapters.content import files_of, version_of
from backstop.adapters.files import read_bytes
from backstop.config import Agent, Config, find_beside, load
from backstop.core import intentsfile, ledgerfile
from backstop.core.declaration import Declaration, Namespace
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
from backstop.errors import ConfigError, SandboxError
from backstop.gate.diff import recorded
from backstop.gate.judge import Asked, judge, rule_sets
from backstop.gate.request import GateRequest, Judgement, ReplayRequest, Written
from backstop.ports import Sandbox
from backstop.replay.code import Code
from backstop.replay.service import Plan, Replay
from backstop.replay.service import replay as replay_runs
from backstop.wiring.redacting import redaction_key

Progress = Callable[[int, int], None]

_GRACE_S: Final = 60.0
_EVENTS_A_WORKER: Final = 500
"""Starting one more process costs as much as replaying about so many more events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One agent to be judged: everything that the request and the configurations say of it."""

    agent: Agent
    config: Config
    base_config: Config | None
    candidate: Path
    base: Path | None
    sandbox: Sandbox
    walls: bool

    @property
    def base_agent(self) -> Agent | None:
        """The agent as the base configures it."""
        return None if self.base_config is None else self.base_config.agents.get(self.agent.name)

    @property
    def base_declarations(self) -> Mapping[str, Declaration] | None:
        """The base's declarations; None where no base configuration is at hand."""
        return None if self.base_agent is None else self.base_agent.declarations


class _Watch:
    """Milliseconds by phase."""

    def __init__(self) -> None:
        self.spent = {"load": 0.0, "replay": 0.0, "verdict": 0.0}
        self._since = perf_counter()

    def lap(self, phase: str) -> None:
        """What passed since the last lap belongs to `phase`."""
        now = perf_counter()
        self.spent[phase] += 1000 * (now - self._since)
        self._since = now


def gate(request: GateRequest, *, progress: Progress | None = None) -> Judgement:
    """Replay the candidates of a configuration, and judge them.

    Raises `BackstopError` where the work cannot be done: exit code 2.
    """
    watch = _Watch()
    config = load(request.replay.config)
    base_config = _base_config(request.replay)
    agents, gone = _judged(request.replay, config, base_config)
    several = len(agents) > 1
    jobs = [_job(request.replay, config, base_config, agent, several=several) for agent in agents]
    watch.lap("load")
    verdicts = [_gate_agent(request, job, watch, progress) for job in jobs]
    verdicts += [
        _unjudged(name, Decision.INCONCLUSIVE, "its entry in the configuration vanished")
        for name in gone
    ]
    return Judgement(verdict=Verdict(agents=tuple(verdicts)), timing_ms=watch.spent)


def _base_config(request: ReplayRequest) -> Config | None:
    """The configuration of the version that runs now, where one is at hand."""
    if request.base is None:
        return None
    found = find_beside(request.base, name=request.config.name, other_than=request.config)
    return None if found is None else load(found)


def _judged(
    request: ReplayRequest, config: Config, base_config: Config | None
) -> tuple[list[Agent], list[str]]:
    """The agents to judge, and the names of those that only the base has still (D5)."""
    if request.agent is not None:
        return [config.agent(request.agent)], []
    known = {} if base_config is None else base_config.agents
    had_ledger = {name for name, agent in known.items() if agent.ledger is not None}
    agents = [
        agent
        for name, agent in config.agents.items()
        if agent.ledger is not None or name in had_ledger
    ]
    return agents or list(config.agents.values()), sorted(had_ledger - config.agents.keys())


def _gate_agent(
    request: GateRequest, job: _Job, watch: _Watch, progress: Progress | None
) -> AgentVerdict:
    configs = [job.config] if job.base_config is None else [job.config, job.base_config]
    policies = [
        policy_of(config, fail_on=request.fail_on, allow_empty=request.allow_empty)
        for config in configs
    ]
    if (absent := _without_ledger(job, policies)) is not None:
        return absent
    ledger = _ledger(job.agent)
    watch.lap("load")
    control = None if job.base is None else _replayed(job, job.base, ledger, progress=progress)
    candidate = _replayed(job, job.candidate, ledger, control=control, progress=progress)
    watch.lap("replay")
    verdict = judge(
        recorded(ledger),
        _asked(candidate),
        control=None if control is None else _asked(control),
        declarations=rule_sets(ledger.header, job.agent.declarations, job.base_declarations),
        policies=policies,
        namespace=_namespace(job, ledger),
        guarded=(job.base_agent or job.agent).guarded,
    )
    watch.lap("verdict")
    return verdict


def replay(request: ReplayRequest, *, progress: Progress | None = None) -> Written:
    """Replay a candidate, and give the sealed intents file of what it asked for.

    Raises `BackstopError` where the work cannot be done: exit code 2.
    """
    config = load(request.config)
    job = _job(request, config, _base_config(request), config.agent(request.agent))
    ledger = _ledger(job.agent)
    control = None if job.base is None else _replayed(job, job.base, ledger, progress=progress)
    candidate = _replayed(job, job.candidate, ledger, control=control, progress=progress)
    return Written(
        data=intentsfile.write(candidate.header, (*candidate.intents, *candidate.runs)),
        intents=len(candidate.intents),
        runs_replayed=sum(run.not_replayable is None for run in candidate.runs),
        runs_total=len(candidate.runs),
    )


def policy_of(
    config: Config | None, *, fail_on: frozenset[Kind] | None, allow_empty: bool
) -> Policy:
    """The configured policy, as far as the caller does not overrule it."""
    policy = Policy()
    if config is not None:
        policy = Policy(
            fail_on=frozenset(Kind(kind.upper()) for kind in config.gate.fail_on),
            max_assumed_steps=config.gate.max_assumed_steps,
            allow_empty=config.gate.allow_empty,
        )
    return replace(
        policy,
        fail_on=policy.fail_on if fail_on is None else fail_on,
        allow_empty=policy.allow_empty or allow_empty,
    )


def _job(
    request: ReplayRequest,
    config: Config,
    base_config: Config | None,
    agent: Agent,
    *,
    several: bool = False,
) -> _Job:
    if several and request.candidate is not None:
        raise ConfigError(
            f"{config.file} has several agents, and --candidate names the folder of one; say "
            "which with --agent",
            slug="config-agent",
        )
    candidate = request.candidate or agent.path
    if candidate is None:
        raise ConfigError(
            f"{config.file}: agent {agent.name} has no path; add one, or name the agent folder "
            "with --candidate",
            slug="config-agent",
        )
    # What holds the candidate back, and whether the base is replayed, the base says (D1).
    ruling = base_config or config
    kind = request.sandbox or ruling.sandbox.kind
    base = _base_folder(request, config, base_config, agent, several=several)
    return _Job(
        agent=agent,
        config=config,
        base_config=base_config,
        candidate=candidate,
        base=base if ruling.gate.control == "base" else None,
        sandbox=sandbox(kind, ruling, python=ruling.sandbox.python),
        walls=kind != "none",
    )


def _base_folder(
    request: ReplayRequest,
    config: Config,
    base_config: Config | None,
    agent: Agent,
    *,
    several: bool,
) -> Path | None:
    """The folder of the agent's version that runs now: named, or found by a checkout's config."""
    if request.base is None:
        return None
    if not several and not (request.base / request.config.name).is_file():
        return request.base
    if base_config is None:
        raise ConfigError(
            f"{config.file} has several agents, and --base names the folder of one; say which "
            f"with --agent, or name the checkout that holds {request.config.name}",
            slug="config-agent",
        )
    known = base_config.agents.get(agent.name)
    return None if known is None else known.path


def sandbox(kind: str, config: Config, *, python: str | None = None) -> Sandbox:
    """The sandbox of a kind, within the configured bounds; `python` runs the candidate."""
    from backstop.adapters.process import Limits, ProcessSandbox
    from backstop.replay.bundle import MODULE, write_bundle

    if kind == "docker":
        raise SandboxError(
            "the docker sandbox is not part of this version; run with --sandbox process",
            slug="sandbox-unknown",
        )
    # The replay itself begins no run after `wall`; only what does not listen is ended later.
    wall = config.sandbox.wall
    limits = Limits(
        memory=config.sandbox.memory,
        silence_s=min(Limits().silence_s, wall),
        wall_s=wall + _GRACE_S,
    )
    return ProcessSandbox(
        bundle=write_bundle,
        module=MODULE,
        python=python or sys.executable,
        limits=limits,
        barred=kind != "none",
    )


def _ledger(agent: Agent) -> Ledger:
    if agent.ledger is None:
        raise ConfigError(
            f"agent {agent.name} has no ledger; add `ledger:` to its configuration",
            slug="config-agent",
        )
    if "://" in agent.ledger:
        raise ConfigError(
            f"agent {agent.name}: {agent.ledger} is a store; pull it into a file first and name "
            "that file",
            slug="ledger-store",
        )
    path = Path(agent.ledger)
    data = read_bytes(path, kind="ledger")
    # A replay takes seconds: the strict reader, which also finds silent skips, is affordable.
    ledgerfile.verify((data,), name=str(path), expect_agent=agent.name)
    return ledgerfile.read(data, name=str(path), expect_agent=agent.name)


def _without_ledger(job: _Job, policies: list[Policy]) -> AgentVerdict | None:
    """The verdict on an agent that has no ledger to be judged by (D5); None if it has one."""
    configured = job.agent.ledger
    if configured is not None and ("://" in configured or Path(configured).exists()):
        return None
    if job.base_config is None:
        if configured is not None:
            return None  # reading it says what is wrong
        why = "it has no ledger; add `ledger:` to its configuration"
    elif job.base_agent is None:
        return _unjudged(
            job.agent.name, Decision.PASS, "NEW: the base does not have this agent", neutral=True
        )
    else:
        return _unjudged(job.agent.name, Decision.INCONCLUSIVE, "its ledger vanished")
    allowed = all(policy.allow_empty for policy in policies)
    return _unjudged(job.agent.name, Decision.PASS if allowed else Decision.INCONCLUSIVE, why)


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


def _namespace(job: _Job, ledger: Ledger) -> Namespace:
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


def _replayed(
    job: _Job,
    folder: Path,
    ledger: Ledger,
    *,
    control: Replay | None = None,
    progress: Progress | None,
) -> Replay:
    plan = Plan(
        header=ledger.header,
        events=ledger.events,
        ledger=ledger.digest,
        candidate=folder,
        version=version_of(folder),
        declarations=rule_sets(ledger.header, job.agent.declarations, job.base_declarations)[0],
        control={} if control is None else control.requests,
        handed={} if control is None else control.handed,
        is_control=job.base is not None and control is None,
        base=control,
        # Without a base there is nothing to compare it with.
        code=Code() if job.base is None else Code.of(files_of(folder)),
        walls=job.walls,
        workers=workers(
            len(ledger.events),
            cores=len(os.sched_getaffinity(0)),
            cpus=job.config.sandbox.cpus,
        ),
        redaction_key=redaction_key(),
    )
    # Two replays fill one bar: the control run is its first half.
    shown = progress and partial(_half, progress, job.base is not None, control is not None)
    deadline = perf_counter() + job.config.sandbox.wall
    return replay_runs(plan, job.sandbox, progress=shown, is_over=lambda: perf_counter() > deadline)


def workers(events: int, *, cores: int, cpus: float | None) -> int:
    """How many processes replay so many events: one a core, within `cpus`, if it is worth it."""
    allowed = cores if cpus is None else min(cores, ceil(cpus))
    return min(allowed, 1 + events // _EVENTS_A_WORKER)


def _half(progress: Progress, two: bool, second: bool, done: int, total: int) -> None:  # noqa: FBT001
    progress(done + (total if second else 0), total * (2 if two else 1))


def _asked(replayed: Replay) -> Asked:
    header = replayed.header
    return Asked(
        intents=replayed.intents,
        keyed_under=header.declarations,
        schemas=replayed.schemas,
        said=replayed.said,
        guarded=frozenset(header.guarded),
        replayed={run.run: run for run in replayed.runs},
        uncovered=header.uncovered,
        version=header.candidate,
    )
