"""Which sandbox a replay runs in, and that sandbox, with what it needs loaded on demand."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from backstop.config import Config
from backstop.errors import SandboxError, UsageError
from backstop.gate.request import ReplayRequest, Runtime, SandboxKind
from backstop.ports import Sandbox

_GRACE_S: Final = 60.0

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


def _word(words: type[_Word], text: str | None, *, option: str) -> _Word | None:
    if text is None:
        return None
    try:
        return words(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is none of {', '.join(words)}") from None


def sandbox(chosen: Choice, ruling: Config, *, replays: int = 1) -> Sandbox:
    """The sandbox that was chosen, within the configured bounds.

    `replays` share its time: each has the configured wall. Raises `SandboxError`.
    """
    if chosen.kind is SandboxKind.DOCKER:
        raise SandboxError(
            "the docker sandbox is not part of this version; run with --sandbox process",
            slug="sandbox-unknown",
        )
    return _process(ruling, replays=replays, barred=chosen.walls)


def _process(ruling: Config, *, replays: int, barred: bool) -> Sandbox:
    from backstop.adapters.process import Limits, ProcessSandbox
    from backstop.replay.bundle import MODULE, write_bundle

    bounds = ruling.sandbox
    # The replay itself begins no run after `wall`; only what does not listen is ended later.
    limits = Limits(
        memory=bounds.memory,
        silence_s=min(Limits().silence_s, bounds.wall),
        wall_s=bounds.wall * replays + _GRACE_S,
    )
    return ProcessSandbox(
        bundle=write_bundle,
        module=MODULE,
        python=bounds.python or sys.executable,
        limits=limits,
        barred=barred,
    )
