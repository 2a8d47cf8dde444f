"""A base and a candidate replayed at once come to just what they come to in turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from backstop.adapters.scripted import Script, ScriptedConversation, ScriptedSandbox, ask, effect
from backstop.errors import SandboxError
from backstop.replay.service import Plan, Replay, replay, replay_both
from tests.dsl import scenario

Asks = Generator[Any, Any, None]
BASE, HEAD = Path("base"), Path("head")

# Imported rows, say: nothing tells what the model was asked.
TEXT = "tool pay identity vendor\n" + "".join(
    f"""
    run r{n}
    step s1
    model pay
    commit pay{{vendor: v{n}}}
    model
    advance
    {"close complete" if n % 2 else ""}
    """
    for n in range(6)
)


def asking(instruction: str, tool: str = "pay") -> Script:
    """A version with a prompt: asks its model, pays, asks again."""

    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        yield ask("desk", instruction=instruction)
        yield effect(tool, vendor="v1")
        yield ask("desk", 1, instruction=instruction)

    return script


@dataclass(frozen=True)
class Folders:
    """A sandbox in which each folder holds a version of its own."""

    versions: Mapping[Path, ScriptedSandbox]

    def start(self, agent: Path) -> ScriptedConversation:
        """Start the version in that folder."""
        return self.versions[agent].start(agent)


def both(
    base: Script, head: Script, *, workers: int = 1, text: str = TEXT, **how: Any
) -> tuple[Replay, Replay]:
    """The replays of two versions."""
    told = scenario(text)
    plan = Plan(
        header=told.header,
        events=told.events,
        ledger="d",
        candidate=BASE,
        version="b",
        is_control=True,
        workers=workers,
    )
    sandbox = Folders({BASE: ScriptedSandbox(script=base), HEAD: ScriptedSandbox(script=head)})
    second = replace(plan, candidate=HEAD, version="h", is_control=False)
    return replay_both(plan, second, sandbox, **how)


def one_by_one(base: Script, head: Script) -> tuple[Replay, Replay]:
    """The same by two replays, of which the second is told what came of the first."""
    told = scenario(TEXT)
    plan = Plan(
        header=told.header,
        events=told.events,
        ledger="d",
        candidate=BASE,
        version="b",
        is_control=True,
    )
    first = replay(plan, ScriptedSandbox(script=base))
    second = replace(
        plan,
        candidate=HEAD,
        version="h",
        is_control=False,
        control=first.requests,
        handed=first.handed,
        base=first,
    )
    return first, replay(second, ScriptedSandbox(script=head))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(("prompt", "drift"), [("same", "none"), ("other", "drifted")])
def test_what_the_base_asked_vouches_for_each_run_as_it_does_in_turn(
    workers: int, prompt: str, drift: str
) -> None:
    """A5: without the base's word every answer would be of unknown worth."""
    expected = one_by_one(asking("same"), asking(prompt))
    assert {run.drift for run in expected[1].runs} == {drift}
    assert both(asking("same"), asking(prompt), workers=workers) == expected
    assert both(asking("same"), asking(prompt), workers=workers, in_turn=True) == expected


def test_without_the_base_the_same_candidate_is_of_unknown_worth() -> None:
    """The control of the test above."""
    told = scenario(TEXT)
    plan = Plan(header=told.header, events=told.events, ledger="d", candidate=HEAD, version="h")
    alone = replay(plan, ScriptedSandbox(script=asking("same")))
    assert {run.drift for run in alone.runs} == {"unknown"}


@pytest.mark.parametrize(("in_turn", "patience_s"), [(False, 20), (True, 0.2)])
def test_both_versions_are_at_work_at_the_same_time(*, in_turn: bool, patience_s: float) -> None:
    """Each waits for the other; in turn they never meet."""
    meeting = threading.Barrier(2, timeout=patience_s)
    seen: set[str] = set()

    def waiting(who: str, run: int) -> Script:
        def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
            count[who] += 1
            if count[who] == run:
                meeting.wait()
                seen.add(who)
            yield from asking("same")(step, state)

        return script

    count = {"base": 0, "head": 0}
    # An open run is played twice, and the candidate is a run behind.
    both(waiting("base", 3), waiting("head", 1), in_turn=in_turn)
    assert seen == (set() if in_turn else {"base", "head"})


def test_two_replays_are_told_as_one_account_that_never_falls() -> None:
    told: list[tuple[int, int]] = []
    both(asking("a"), asking("a"), workers=2, progress=lambda *at: told.append(at))
    assert told == [(n, 12) for n in range(1, 13)]


def raising(slug: str) -> Callable[[Path], ScriptedConversation]:
    """A version that cannot be started."""

    def start(agent: Path) -> ScriptedConversation:
        raise SandboxError(f"{agent} is broken", slug=slug)

    return start


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize(
    ("broken", "told"),
    [({BASE}, "base is broken"), ({HEAD}, "head is broken"), ({BASE, HEAD}, "base is broken")],
)
def test_the_fault_of_the_base_is_told_first(
    broken: set[Path], told: str, *, in_turn: bool
) -> None:
    class Broken:
        def start(self, agent: Path) -> ScriptedConversation:
            if agent in broken:
                raising("sandbox")(agent)
            return ScriptedSandbox(script=asking("a")).start(agent)

    plan = Plan(
        header=scenario(TEXT).header, events=scenario(TEXT).events, ledger="d", candidate=BASE
    )
    with pytest.raises(SandboxError, match=told):
        replay_both(plan, replace(plan, candidate=HEAD), Broken(), in_turn=in_turn)


def test_d6_a_candidate_is_not_begun_on_a_run_that_the_base_had_no_time_for() -> None:
    """D6: what is left out is named in both, and counts against coverage."""
    played = threading.Event()

    def first_only(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        yield from asking("a")(step, state)
        played.set()

    base, head = both(first_only, asking("a"), is_over=played.is_set)
    assert [run.run for run in base.runs if run.not_replayable is None] == ["r4"]
    assert all("left out" in (run.not_replayable or "") for run in head.runs)


def test_an_interruption_ends_both() -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        both(asking("a"), asking("a"), progress=interrupt)
