"""The gate as a step of a workflow runs it: the checkout is the candidate, GitHub has the base."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from backstop.adapters.github.archive import Archive, Checkout
from backstop.adapters.github.client import Denied, GitHub
from backstop.adapters.github.event import Event, Kind
from backstop.config import Config, load
from backstop.core.divergence import Kind as DivergenceKind
from backstop.errors import BackstopError, ConfigError
from backstop.gate.request import Ancestor, Ancestors, GateRequest, Judgement
from backstop.wiring.gating import gate

DEPLOYS: Final = frozenset({Kind.PUSH, Kind.WORKFLOW_DISPATCH})
"""What comes before a deploy: nothing is subtracted there (D3)."""


class NoBase(BackstopError):
    """The version to compare with cannot be had."""

    slug = "no-base"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What the candidate is compared with: `base` is a checkout, None where there is none.

    `notes` are for the report: why there is no base, say.
    """

    base: Path | None = None
    base_sha: str | None = None
    ancestors: Ancestors | None = None
    notes: tuple[str, ...] = ()


def ground_of(
    event: Event, *, named: Path | None, ref: str | None, github: GitHub, into: Path
) -> Ground:
    """The base that a folder, a ref or the event names, fetched below `into` if need be.

    Raises `BackstopError`: ``no-base`` where what is named cannot be had, and what `Archive`
    raises.
    """
    if named is not None:
        if not named.is_dir():
            raise NoBase(
                f"input base: there is no folder {named.name} in the workspace; check the base "
                "out before this step, or leave the input out and let it be fetched"
            )
        return Ground(base=named, base_sha=event.base_sha)
    archive = Archive(github, repo=event.repo)
    wanted = ref or archive.base_of(event)
    if wanted is None:
        return Ground(notes=(_no_base(event),))
    checkout = archive.fetch_checkout(wanted, into / "base")
    if isinstance(checkout, Checkout):
        ancestry = _Ancestry(archive, checkout, into)
        return Ground(base=checkout.root, base_sha=checkout.sha, ancestors=ancestry.nearest)
    if ref is None and event.kind is Kind.PUSH and archive.shows(event.merged_sha):
        # What a force-push threw away is no loss: this commit is what is to be deployed.
        return Ground(notes=(f"no base: the commit before this push cannot be had ({checkout})",))
    raise NoBase(
        f"the base {ref or wanted[:12]} of {event.repo} cannot be had ({checkout}); give the job "
        "`contents: read`, or check the base out in a step before, and name its folder by the "
        "input base"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """A change and its base: where the change's checkout begins, at `top`, and the folder `base`.

    That one holds, in the base's checkout, what the change's configuration is the change of.
    """

    top: Path
    base: Path


def sides_of(base: Path, config: Path, *, workspace: Path, named: bool) -> Sides:
    """How a change with its configuration at `config` lies to the base's checkout at `base`.

    The change may be the whole workspace, or a checkout in a folder of it (`path` of
    actions/checkout); a `named` base may be laid out beside a change that has no history. Where
    none of these has the configuration, it is the first: there Backstop is new.
    """
    above = (config.parent, *config.parent.parents)
    tops = above[: above.index(workspace) + 1]
    history = next((one for one in tops if (one / ".git").exists()), workspace)
    places = [
        Sides(top=top, base=base / config.parent.relative_to(top))
        for top in (workspace, history, *([config.parent] if named else []))
    ]
    return next((one for one in places if (one.base / config.name).is_file()), places[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the configurations say, as far as a report tells it; paths are from the checkout's top.

    `fail_on` are the kinds that block under the head's policy or the base's. `edits` are for
    the report: what the change does to the rules that it is judged by (D1).
    """

    fail_on: frozenset[DivergenceKind] = frozenset({DivergenceKind.DUPLICATE})
    paths: Mapping[str, str] = field(default_factory=dict)
    base_paths: Mapping[str, str] = field(default_factory=dict)
    edits: tuple[str, ...] = ()


def rules_of(config: Path, *, root: Path, base: Path | None, base_root: Path | None) -> Rules:
    """What `config`, and the one of its name at `base`, say. Raises `ConfigError`."""
    head = load(config)
    found = None if base is None else base / config.name
    before = load(found) if found is not None and found.is_file() else None
    paths = _paths(head, root)
    base_paths = {} if before is None or base_root is None else _paths(before, base_root)
    kinds = (kind for one in (head, before) if one is not None for kind in one.gate.fail_on)
    return Rules(
        fail_on=frozenset(DivergenceKind(kind.upper()) for kind in kinds),
        paths=paths,
        base_paths=base_paths,
        edits=() if base is None else (*_edits(config.name, head, before), *_moved(head, before)),
    )


def _paths(config: Config, root: Path) -> dict[str, str]:
    top = root.resolve()
    return {
        name: agent.path.resolve().relative_to(top).as_posix()
        for name, agent in config.agents.items()
        if agent.path is not None and agent.path.resolve().is_relative_to(top)
    }


def _edits(name: str, head: Config, base: Config | None) -> Iterator[str]:
    if base is None:
        yield (
            f"The base has no {name}: this change brings Backstop in, and is judged by its own "
            "policy, declarations and ledger."
        )
        return
    stated = _stated(base)
    for what, said in _stated(head).items():
        if said != stated[what]:
            yield (
                f"This change edits the {what} in {name}. It is judged under the base's and under "
                "its own, and the worse verdict stands."
            )


def _moved(head: Config, base: Config | None) -> Iterator[str]:
    before = {} if base is None else _from_own_folder(base)
    for agent, path in _from_own_folder(head).items():
        if path != before.get(agent, path):
            yield (
                f"This change has agent {agent} in another folder than on the base: {path}, not "
                f"{before[agent]}. Make sure that it is the one that is deployed."
            )


def _from_own_folder(config: Config) -> dict[str, str]:
    """Where agents lie from the configuration's folder, wherever that one lies."""
    folder = Path(config.file).parent
    paths = {name: agent.path for name, agent in config.agents.items()}
    return {name: os.path.relpath(path, folder) for name, path in paths.items() if path}


def _stated(config: Config) -> dict[str, object]:
    return {
        "policy": config.gate,
        "declarations": {name: agent.declarations for name, agent in config.agents.items()},
    }


def judged(request: GateRequest, *, root: Path) -> Judgement:
    """The judgement on a checkout at `root`. Raises `BackstopError`."""
    if not request.replay.config.is_file():
        empty = next((path for path in root.iterdir() if path.name != ".git"), None) is None
        where = request.replay.config.relative_to(root)
        raise ConfigError(
            "the workspace is empty: run actions/checkout in a step before this one"
            if empty
            else f"{where}: there is no such file in the checkout; name the configuration by the "
            "input config, or restore it"
        )
    return gate(request)


def _no_base(event: Event) -> str:
    why = {
        Kind.PUSH: "this push made the branch",
        Kind.WORKFLOW_DISPATCH: "nobody named one (input base-ref)",
    }
    return (
        f"no base: {why.get(event.kind, 'the event names none')}. The ledger, the policy and the "
        "declarations are this commit's own"
    )


class _Ancestry:
    """Files that the base's commit lacks, from the nearest ancestor that has them (G07)."""

    def __init__(self, archive: Archive, base: Checkout, into: Path) -> None:
        self._archive = archive
        self._base = base
        self._into = into

    def nearest(self, file: Path) -> Ancestor | None:
        """`file` of the checkout as an earlier commit has it; None if none of them does."""
        resolved, top = file.resolve(), self._base.root.resolve()
        if not resolved.is_relative_to(top):
            return None
        path = resolved.relative_to(top)
        commit = self._archive.last_with(path.as_posix(), self._base.sha)
        if commit is None:
            return None
        root = self._into / commit
        if not root.exists() and isinstance(self._archive.fetch_checkout(commit, root), Denied):
            return None
        return Ancestor(commit=commit, file=root / path)
