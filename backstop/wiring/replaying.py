"""Replays a candidate, and the base beside it, on the processors that may be used."""

from __future__ import annotations

import os
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Final

from backstop.adapters.content import files_of, version_of
from backstop.core.ledgerfile import Ledger
from backstop.gate.judge import Asked, rule_sets
from backstop.replay.code import Code
from backstop.replay.service import Plan, Progress, Replay, replay, replay_both
from backstop.wiring.jobs import Job
from backstop.wiring.redacting import redaction_key
from backstop.wiring.sandboxes import sandbox

_EVENTS_A_WORKER: Final = 500
"""Starting one more process costs as much as replaying about so many more events."""


def replays(
    job: Job, ledger: Ledger, *, progress: Progress | None = None
) -> tuple[Replay | None, Replay]:
    """The base's replay, where there is one, and the candidate's; side by side where that fits.

    Each has the configured wall. Raises `SandboxError` or `WireError` where a version cannot be
    started or imported.
    """
    allowed = processors(len(os.sched_getaffinity(0)), job.config.sandbox.cpus)
    versions = 1 if job.base is None else 2
    walls = sandbox(job.sandbox, job.ruling, replays=versions)
    deadline = perf_counter() + job.config.sandbox.wall * versions

    def is_over() -> bool:
        return perf_counter() > deadline

    if job.base is None:
        plan = _plan(job, job.candidate, ledger, cores=allowed)
        return None, replay(plan, walls, progress=progress, is_over=is_over)
    share = max(1, allowed // versions)
    base = _plan(job, job.base, ledger, cores=share, is_control=True)
    candidate = _plan(job, job.candidate, ledger, cores=share)
    return replay_both(
        base, candidate, walls, progress=progress, is_over=is_over, in_turn=allowed < versions
    )


def _plan(job: Job, folder: Path, ledger: Ledger, *, cores: int, is_control: bool = False) -> Plan:
    return Plan(
        header=ledger.header,
        events=ledger.events,
        ledger=ledger.digest,
        candidate=folder,
        version=version_of(folder),
        declarations=rule_sets(ledger.header, job.agent.declarations, job.base_declarations)[0],
        is_control=is_control,
        # Without a base there is nothing to compare it with.
        code=Code() if job.base is None else Code.of(files_of(folder)),
        walls=job.sandbox.walls,
        workers=workers(len(ledger.events), cores=cores),
        redaction_key=redaction_key(),
    )


def processors(cores: int, cpus: float | None) -> int:
    """How many processes may run at a time: one a core, within the configured `cpus`."""
    return cores if cpus is None else min(cores, ceil(cpus))


def workers(events: int, *, cores: int) -> int:
    """How many processes replay so many events: one a core, if it is worth it."""
    return min(cores, 1 + events // _EVENTS_A_WORKER)


def asked(replayed: Replay) -> Asked:
    """What a replayed version asked for, as the gate needs it."""
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
