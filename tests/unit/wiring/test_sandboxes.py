"""Which sandbox is meant: one rule for a kind, a runtime and a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop import config
from backstop.adapters.process import ProcessSandbox
from backstop.errors import UsageError
from backstop.gate.request import ReplayRequest, Runtime, SandboxKind
from backstop.wiring.sandboxes import Choice, choice, sandbox
from tests.e2e.command import ROOT, in_a_process

PROCESS, DOCKER, NONE = SandboxKind.PROCESS, SandboxKind.DOCKER, SandboxKind.NONE


def configured(kind: str) -> config.Config:
    text = f"version: 1\nagents: {{a: {{path: a}}}}\nsandbox: {{kind: {kind}}}\n"
    return config.loads(text, name="c", root=Path())


@pytest.mark.parametrize(
    ("asked", "runtime", "stated", "kind", "whose"),
    [
        (None, None, "process", PROCESS, Runtime.DOCKER),
        (None, None, "docker", DOCKER, Runtime.DOCKER),
        ("process", None, "docker", PROCESS, Runtime.DOCKER),
        ("docker", None, "process", DOCKER, Runtime.DOCKER),
        (None, "docker", "process", DOCKER, Runtime.DOCKER),
        (None, "podman", "process", DOCKER, Runtime.PODMAN),
        ("docker", "podman", "none", DOCKER, Runtime.PODMAN),
        (None, "none", "docker", PROCESS, Runtime.NONE),
        ("process", "none", "docker", PROCESS, Runtime.NONE),
        ("none", None, "docker", NONE, Runtime.DOCKER),
    ],
)
def test_g22_a_runtime_chooses_the_sandbox_and_none_of_them_does_without(
    asked: str | None, runtime: str | None, stated: str, kind: SandboxKind, whose: Runtime
) -> None:
    """G22: self-hosted runners have podman, or nothing; the same command serves them."""
    request = ReplayRequest(config=Path("c"), sandbox=asked, runtime=runtime)
    found = choice(request, configured(stated))
    assert (found.kind, found.runtime) == (kind, whose)
    assert found.walls is (kind is not NONE)


@pytest.mark.parametrize(
    ("asked", "runtime"),
    [("process", "podman"), ("none", "docker"), ("docker", "none"), ("none", "none")],
)
def test_two_that_contradict_are_refused(asked: str, runtime: str) -> None:
    """To take one of the two would be to guess which walls are wanted."""
    request = ReplayRequest(config=Path("c"), sandbox=asked, runtime=runtime)
    with pytest.raises(UsageError, match="leave one of the two out"):
        choice(request, configured("process"))


def test_a_world_is_handed_to_the_candidates() -> None:
    """ADR 0035: 0 is the recorded one, and the usual one."""
    ruling = configured("process")
    for world, found in ((0, sandbox(Choice(kind=PROCESS), ruling)),
                         (1, sandbox(Choice(kind=PROCESS), ruling, world=1))):  # fmt: skip
        assert isinstance(found, ProcessSandbox)
        assert found.world == world


def test_a_word_that_is_none_is_refused() -> None:
    jail = ReplayRequest(config=Path("c"), sandbox="jail")
    for request in (jail, ReplayRequest(config=Path("c"), runtime="containerd")):
        with pytest.raises(UsageError, match="is none of"):
            choice(request, configured("process"))


def test_two_replays_in_one_sandbox_have_twice_the_time() -> None:
    """Each has the configured wall, side by side on half of the processors."""
    chosen = Choice(kind=PROCESS)
    one, two = (sandbox(chosen, configured("process"), replays=n) for n in (1, 2))
    assert isinstance(one, ProcessSandbox)
    assert isinstance(two, ProcessSandbox)
    assert two.limits.wall_s - one.limits.wall_s == 300


def test_without_a_daemon_the_gate_says_so_in_one_line(tmp_path: Path) -> None:
    """Exit code 2, and what to do without one."""
    ran = in_a_process(
        *("gate", "--config", ROOT / "backstop.yaml", "--agent", "vendor-onboarding"),
        *("--runtime", "docker"),
        DOCKER_HOST=f"unix://{tmp_path}/none.sock",
    )
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error[docker-missing]: ")
    assert ran.err.count("\n") == 1
    assert "--runtime none" in ran.err
