"""Replays a candidate, and the base beside it, on the processors that may be used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path, PurePosixPath
from time import perf_counter
from typing import Final, Self

import msgspec

from backstop.adapters.content import files_of, version_of
from backstop.adapters.project import data_around, project_of
from backstop.config.waivers import FILE as WAIVERS
from backstop.core.intents import Intent, IntentsHeader, RunReplayed
from backstop.core.ledgerfile import Ledger
from backstop.gate.comparing import Asked
from backstop.gate.judge import rule_sets
from backstop.gate.packages import differing
from backstop.gate.request import SandboxKind
from backstop.ports import Sandbox
from backstop.replay.broker import Broker
from backstop.replay.code import Code
from backstop.replay.keyed import said
from backstop.replay.naming import names_in
from backstop.replay.service import Plan, Progress, Replay, replay, replay_both
from backstop.replay.wire import ToolSeen
from backstop.wiring.accepting import BASELINE
from backstop.wiring.checkouts import inside, package_files
from backstop.wiring.jobs import Job
from backstop.wiring.redacting import redaction_key
from backstop.wiring.sandboxes import Contents, Say, Shelf, sandbox

_EVENTS_A_WORKER: Final = 500
"""Starting one more process costs as much as replaying about so many more events."""


def replays(
    job: Job,
    ledger: Ledger,
    *,
    world: int = 0,
    live: Broker | None = None,
    progress: Progress | None = None,
    withheld: Sequence[Path] = (),
    shelf: Shelf | None = None,
    say: Say | None = None,
) -> tuple[Told | None, Told]:
    """The base's replay, where there is one, and the candidate's; side by side where that fits.

    Each has the configured wall. `world` is what both meet: 0 has the recorded time and chance.
    `withheld` is what no candidate may see, beside the ledgers, and `shelf` where layers with their
    packages are kept; `say` is told what takes long before a replay can begin. `live` answers the
    candidate's model requests, where one may. Raises
    `SandboxError` or `WireError` where a version cannot be started or imported.
    """
    allowed = processors(len(os.sched_getaffinity(0)), job.config.sandbox.cpus)
    versions = 1 if job.base is None else 2
    contents = Contents(
        checkouts=job.checkouts(),
        withheld=(*job.ledgers(), *withheld),
        shelf=shelf,
        ruling=job.ruling_top,
    )

    def walls(python: str | None) -> Sandbox:
        return sandbox(
            job.sandbox,
            job.ruling,
            python=python,
            replays=versions,
            world=world,
            # A change may bring what its own code needs: set behind the barrier, it frees nobody.
            env=job.config.sandbox.env,
            contents=contents,
            say=say,
        )

    own = walls(job.interpreters.candidate)
    deadline = perf_counter() + job.config.sandbox.wall * versions

    def is_over() -> bool:
        return perf_counter() > deadline

    if job.base is None:
        plan = _plan(job, job.candidate, ledger, cores=allowed, live=live)
        return None, Told.by(replay(plan, own, progress=progress, is_over=is_over))
    share = max(1, allowed // versions)
    base = _plan(job, job.base, ledger, cores=share, is_control=True)
    candidate = _plan(job, job.candidate, ledger, cores=share, live=live)
    first, second = replay_both(
        base,
        candidate,
        own,
        progress=progress,
        is_over=is_over,
        in_turn=allowed < versions,
        base_sandbox=None if job.interpreters.are_one else walls(job.interpreters.base),
    )
    return Told.by(first), Told.by(second)


def _plan(
    job: Job,
    folder: Path,
    ledger: Ledger,
    *,
    cores: int,
    is_control: bool = False,
    live: Broker | None = None,
) -> Plan:
    return Plan(
        header=ledger.header,
        events=ledger.events,
        ledger=ledger.digest,
        candidate=folder,
        version=version_of(folder),
        declarations=rule_sets(ledger.header, job.agent.declarations, job.base_declarations)[0],
        is_control=is_control,
        # Without a base there is nothing to compare it with.
        code=Code() if job.base is None else _code(job, folder),
        walls=job.sandbox.walls,
        unseen=() if is_control else _unseen(job),
        workers=workers(len(ledger.events), cores=cores),
        redaction_key=redaction_key(),
        live=live,
    )


def _code(job: Job, folder: Path) -> Code:
    """What a version is made of, with what either version names outside of its folder."""
    versions = [one for one in (job.candidate, job.base) if one is not None]
    names = frozenset[str]().union(*(names_in(files_of(one)) for one in versions))
    around = data_around(folder, names, project=project_of(folder, job.checkouts()))
    named = {PurePosixPath(name).name for name in names}
    ours = {path for path in _of_the_gate(job, folder) if PurePosixPath(path).name not in named}
    return Code.of((one for one in files_of(folder) if one[0] not in ours), around=around)


def _of_the_gate(job: Job, folder: Path) -> frozenset[str]:
    """The files in a version's folder that the gate reads for itself, by their paths in it.

    They are judged by their own rules (D1, D4), and are no part of the agent unless it names them:
    else each waiver would change a file that no run reads, which takes another waiver.
    """
    files = job.ledgers()
    for config in (job.config, job.base_config):
        if config is not None:
            file = Path(config.file)
            files += [file, file.parent / WAIVERS, file.parent / BASELINE]
    found = (inside(file, folder) for file in files)
    return frozenset(path for path in found if path is not None)


def _unseen(job: Job) -> tuple[str, ...]:
    """Packages that the change brings, where both versions run with one interpreter's (D7).

    Containers are made of what each version's own files name.
    """
    if job.base is None or job.sandbox.kind is SandboxKind.DOCKER or not job.interpreters.are_one:
        return ()
    before = package_files(job.base, job.tops[1])
    after = package_files(job.candidate, job.tops[0])
    return tuple(
        f"{path} changed, and both versions ran with the packages of one interpreter; name one "
        "for each with --base-python and --candidate-python"
        for path in differing(before, after)
    )


def processors(cores: int, cpus: float | None) -> int:
    """How many processes may run at a time: one a core, within the configured `cpus`."""
    return cores if cpus is None else min(cores, ceil(cpus))


def workers(events: int, *, cores: int) -> int:
    """How many processes replay so many events: one a core, if it is worth it."""
    return min(cores, 1 + events // _EVENTS_A_WORKER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a replay told, as far as a verdict needs it."""

    header: IntentsHeader
    intents: Sequence[Intent]
    runs: Sequence[RunReplayed]
    tools: Sequence[ToolSeen]

    @classmethod
    def by(cls, replayed: Replay) -> Self:
        """What this replay told."""
        return cls(
            header=replayed.header,
            intents=replayed.intents,
            runs=replayed.runs,
            tools=replayed.ready.tools,
        )

    @property
    def is_whole(self) -> bool:
        """Was every run replayed to its end? What was not may be another time."""
        return all(run.not_replayable is None for run in self.runs)


def asked(told: Told, *, again: Sequence[Told] = ()) -> Asked:
    """What a replayed version asked for, as the gate takes it; `again` in other worlds."""
    header = told.header
    return Asked(
        intents=told.intents,
        keyed_under=header.declarations,
        schemas={tool.tool: tool.schema for tool in told.tools},
        said=said(told.tools),
        guarded=frozenset(header.guarded),
        replayed={run.run: run for run in told.runs},
        uncovered=header.uncovered,
        unshown=header.unshown,
        escapes=header.escapes,
        version=header.candidate,
        live=None if header.live is msgspec.UNSET else header.live,
        again=[asked(other) for other in again],
    )
