"""Which sandbox a replay runs in, and that sandbox, with what it needs loaded on demand."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from backstop.adapters.bounds import Limits
from backstop.clock import SystemClock
from backstop.config import Config
from backstop.errors import MissingExtra, UsageError
from backstop.gate.request import ReplayRequest, Runtime, SandboxKind
from backstop.ports import Sandbox

INDEX: Final = "BACKSTOP_INDEX_URL"
"""The variable that names the package index of candidates, with a password if it needs one."""

IGNORE_FILE: Final = ".backstopignore"
"""At a checkout's top: what stays out of an image."""

_SILENT_PART: Final = 5
"""A candidate may say nothing for one part of its whole time, on a slow machine too."""
_GRACE_S: Final = 60.0

Say: TypeAlias = Callable[[str], None]
"""Told in a few words what is being done that takes long."""

_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A kind of sandbox, and whose containers it is made of where it is one of containers."""

    kind: SandboxKind
    runtime: Runtime = Runtime.DOCKER

    @property
    def walls(self) -> bool:
        """Is the candidate held back at all?"""
        return self.kind is not SandboxKind.NONE


def choice(request: ReplayRequest, ruling: Config) -> Choice:
    """The sandbox that the request asks for, else the one that `ruling` configures.

    To name a container runtime is to choose the `docker` sandbox; to say that there is none,
    the `process` sandbox. Raises `UsageError` for unknown words, and two that contradict.
    """
    asked = _word(SandboxKind, request.sandbox, option="--sandbox")
    runtime = _word(Runtime, request.runtime, option="--runtime")
    if runtime is None:
        return Choice(kind=asked or SandboxKind(ruling.sandbox.kind))
    meant = SandboxKind.PROCESS if runtime is Runtime.NONE else SandboxKind.DOCKER
    if asked not in {None, meant}:
        raise UsageError(
            f"--runtime {runtime} means the sandbox {meant}, and --sandbox says {asked}; leave "
            "one of the two out"
        )
    return Choice(kind=meant, runtime=runtime)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreters:
    """Whose packages each version is replayed with; None is our own interpreter."""

    candidate: str | None = None
    base: str | None = None

    @property
    def are_one(self) -> bool:
        """Does one interpreter play both versions?"""
        return self.candidate == self.base


def interpreters(request: ReplayRequest, ruling: Config, chosen: Choice) -> Interpreters:
    """The interpreters that the request names, else the one that `ruling` does.

    Raises `UsageError` where one is named for containers: those are made of each version's own.
    """
    usual = ruling.sandbox.python
    named = {"--candidate-python": request.candidate_python, "--base-python": request.base_python}
    if chosen.kind is SandboxKind.DOCKER and (given := [k for k, v in named.items() if v]):
        raise UsageError(
            f"{given[0]}: a container is made of what its version's own files name; leave it out"
        )
    return Interpreters(
        candidate=request.candidate_python or usual, base=request.base_python or usual
    )


def _word(words: type[_Word], text: str | None, *, option: str) -> _Word | None:
    if text is None:
        return None
    try:
        return words(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is none of {', '.join(words)}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Where layers with packages are kept for other machines, and what they are sealed with."""

    folder: Path
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What candidates are made of: the checkouts that they lie in, and what goes into no image.

    `shelf` is where their packages may be had from without being installed, `ruling` the
    checkout whose ignore file counts; None is each one's own.
    """

    checkouts: Sequence[Path] = ()
    withheld: Sequence[Path] = ()
    shelf: Shelf | None = None
    ruling: Path | None = None


def sandbox(
    chosen: Choice,
    ruling: Config,
    *,
    python: str | None = None,
    replays: int = 1,
    world: int = 0,
    env: Mapping[str, str] | None = None,
    contents: Contents | None = None,
    say: Say | None = None,
) -> Sandbox:
    """The sandbox that was chosen, within the configured bounds.

    `python` is an interpreter in place of the configured one. `replays` share its time: each has
    the configured wall. `world` is what candidates meet there:
    0 has the recorded time and chance; `env` are variables beside those that `ruling` has.
    `say` is told what takes long to build. Raises `MissingExtra`,
    and `SandboxError` where there is no daemon that can be used.
    """
    limits = _limits(ruling, replays=replays, env=env or {})
    if chosen.kind is SandboxKind.DOCKER:
        return _docker(chosen, ruling, limits, contents or Contents(), say, world=world)
    around = () if contents is None else contents.checkouts
    usual = python or ruling.sandbox.python
    return _process(usual, limits, around, barred=chosen.walls, world=world)


def _limits(ruling: Config, *, replays: int, env: Mapping[str, str]) -> Limits:
    bounds = ruling.sandbox
    # The replay itself begins no run after `wall`; only what does not listen is ended later.
    return Limits(
        memory=bounds.memory,
        silence_s=min(max(Limits().silence_s, bounds.wall / _SILENT_PART), bounds.wall),
        wall_s=bounds.wall * replays + _GRACE_S,
        variables={**env, **bounds.env},
    )


def _process(
    python: str | None, limits: Limits, checkouts: Sequence[Path], *, barred: bool, world: int
) -> Sandbox:
    from backstop.adapters.process import ProcessSandbox
    from backstop.replay.bundle import MODULE, write_bundle

    return ProcessSandbox(
        bundle=write_bundle,
        module=MODULE,
        python=python or sys.executable,
        checkouts=checkouts,
        limits=limits,
        barred=barred,
        world=world,
    )


def _docker(
    chosen: Choice,
    ruling: Config,
    limits: Limits,
    contents: Contents,
    say: Say | None,
    *,
    world: int,
) -> Sandbox:
    try:
        from backstop.adapters.docker.building.images import ImageBuilder
        from backstop.adapters.docker.building.kept import KeptLayers
        from backstop.adapters.docker.building.recipe import Recipe
        from backstop.adapters.docker.client import connect
        from backstop.adapters.docker.sandbox import DockerSandbox
        from backstop.adapters.docker.sweeping import ownership
    except ImportError as error:
        raise MissingExtra(
            f"the docker sandbox needs `pip install 'backstop-gate[docker]'` ({error}); "
            "--runtime none does without"
        ) from error
    from backstop.replay.bundle import MODULE, write_harness

    podman = chosen.runtime is Runtime.PODMAN
    client, build, shelf = connect(podman=podman), ruling.sandbox.build, contents.shelf
    _remove_at_signals(podman=podman)
    recipe = Recipe(
        python=build.python,
        base=build.base,
        requirements=build.requirements,
        # A configuration is no place for a password.
        index=os.environ.get(INDEX) or build.index,
        proxy=build.proxy,
        wheels_only=build.wheels_only,
        dockerfile=build.dockerfile,
        memory=build.memory,
        wall_s=build.wall,
        ruling=contents.ruling,
    )
    images = ImageBuilder(
        client,
        recipe,
        checkouts=contents.checkouts,
        withheld=contents.withheld,
        kept=KeptLayers(folder=shelf.folder, secret=shelf.secret) if shelf else None,
        labels=ownership(now=SystemClock().now(), for_s=build.wall),
        say=say or _silent,
    )
    return DockerSandbox(
        client, images.build, limits, bundle=write_harness, module=MODULE, world=world
    )


@cache
def _remove_at_signals(*, podman: bool) -> None:
    """Whoever ends this process ends its containers; said once, however many agents there are."""
    from backstop.adapters.docker.client import connect
    from backstop.adapters.docker.sweeping import remove_at_signals

    remove_at_signals(partial(connect, podman=podman))


def _silent(_: str) -> None:
    """Nobody watches."""
