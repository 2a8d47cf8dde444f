"""What the composition root works out by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop import config
from backstop.adapters.process import ProcessSandbox
from backstop.gate.request import SandboxKind
from backstop.wiring.replaying import processors, workers
from backstop.wiring.sandboxes import Choice, sandbox


@pytest.mark.parametrize(
    ("events", "cores", "cpus", "processes"),
    [
        (100_000, 8, None, 8),
        (100_000, 8, 3, 3),
        (100_000, 8, 2.5, 3),
        (100_000, 8, 0.5, 1),
        (100_000, 2, 64, 2),
        (10, 8, None, 1),
        (0, 1, None, 1),
    ],
)
def test_a_replay_takes_the_cores_that_it_may_have_and_can_use(
    events: int, cores: int, cpus: float | None, processes: int
) -> None:
    assert workers(events, cores=processors(cores, cpus)) == processes


@pytest.mark.parametrize(("wall", "silence"), [("6s", 6), ("300s", 60), ("1h", 720)])
def test_no_candidate_may_be_silent_for_longer_than_its_whole_time(
    wall: str, silence: float
) -> None:
    text = f"version: 1\nagents: {{a: {{path: a}}}}\nsandbox: {{wall: {wall}}}\n"
    started = sandbox(Choice(kind=SandboxKind.PROCESS), config.loads(text, name="c", root=Path()))
    assert isinstance(started, ProcessSandbox)
    assert started.limits.silence_s == silence
