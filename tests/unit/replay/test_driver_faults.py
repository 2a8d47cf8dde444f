"""A candidate that fails, is barred, says something else or leaves: named, and never a pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backstop.adapters.scripted import ScriptedSandbox, effect
from backstop.errors import BackstopError, SandboxError, WireError
from backstop.replay.service import Plan, replay
from tests.dsl import scenario
from tests.unit.replay.test_driver import AGENT, TEXT, Asks, faithful, replayed


def test_a_candidate_that_raises_makes_its_run_not_replayable_and_the_others_go_on() -> None:
    text = (
        TEXT
        + """
    run r2
    step s1
    commit pay{vendor: acme, amount: 1}
    advance
    close complete
    """
    )

    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        yield from faithful(step, state)
        if step["step"] == "s2":
            raise ValueError("out\nof luck")

    done = replayed(script, text)
    broken, fine = done.runs
    assert broken.not_replayable == "step s2: the candidate raised ValueError: out of luck"
    assert broken.assumed_from == 1
    assert fine.not_replayable is None
    assert [i.run for i in done.intents] == ["r1", "r1", "r2"]


def test_a_fault_where_the_record_ended_in_one_too_is_none() -> None:
    text = """
    tool pay identity vendor
    run r1
    step s1
    fail pay{vendor: acme}
    end error
    """

    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        reply = yield effect("pay", vendor="acme")
        raise RuntimeError(reply["error_type"])

    assert replayed(script, text).runs[0].not_replayable is None


def test_what_a_candidate_was_barred_from_makes_its_run_inconclusive_by_name() -> None:
    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        yield {"t": "escape", "what": "socket", "detail": "10.0.0.1:443", "step": step["step"]}
        yield from faithful(step, state)

    done = replayed(script)
    assert done.runs[0].not_replayable == (
        "step s1: socket (10.0.0.1:443): barred, so an effect was not intercepted"
    )
    assert done.header.uncovered == done.escapes
    assert done.escapes[0] == "run r1, step s1: socket (10.0.0.1:443)"


def test_a_loop_without_end_is_ended_and_named() -> None:
    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        while True:
            yield effect("check", po=7)

    assert "agent-loops" in (replayed(script).runs[0].not_replayable or "")


def test_a_step_that_never_ran_is_not_run_and_one_that_only_moved_on_is() -> None:
    text = """
    run r1
    step s1
    end done
    step s2
    close abandoned
    """
    seen: list[str] = []

    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Asks:
        seen.append(step["step"])
        yield from ()

    assert replayed(script, text).runs[0].steps_total == 2
    assert seen == ["s1"]


@pytest.mark.parametrize(
    ("line", "slug"),
    [
        (b"garbage", "wire"),
        (b'{"t":"intent","id":7,"tool":"pay","args":{"x":NaN}}', "wire"),
        (b'{"t":"intent","id":7,"tool":"pay","tool":"mail","args":{}}', "wire"),
        (b'{"t":"intent","id":7,"tool":"pay","args":{}}', "wire-order"),
        (b'{"t":"run_ready","id":1}', "wire-order"),
        (b'{"t":"nonsense","id":7}', "wire"),
        (b"[]", "wire"),
    ],
)
def test_a_harness_that_says_something_else_makes_the_run_not_replayable(
    line: bytes, slug: str
) -> None:
    done = replayed(faithful, instead=[line])
    assert f"[{slug}]" in (done.runs[0].not_replayable or "")
    assert done.intents == ()


def test_a_harness_that_leaves_early_makes_the_run_not_replayable() -> None:
    done = replayed(faithful, instead=[])
    assert "agent-exited" in (done.runs[0].not_replayable or "")


def test_a_run_that_died_is_told_of_and_the_next_one_plays_in_the_same_process() -> None:
    done = replayed(
        faithful,
        instead=[
            b'{"t":"fault","slug":"agent-exited","detail":"left with status 3"}',
            b'{"t":"run_done","id":9,"run":"r1","events":0,"digest":""}',
        ],
    )
    assert done.runs[0].not_replayable == "step s1: left with status 3 [agent-exited]"


def test_a_candidate_that_does_not_load_is_an_error_with_the_harness_reason() -> None:
    class NeverReady:
        def start(self, agent: Path) -> Any:
            conversation = ScriptedSandbox(script=faithful).start(agent)
            conversation.receive()
            conversation._lines.append(  # noqa: SLF001
                b'{"t":"fault","slug":"agent-import","detail":"No module\\nnamed x"}'
            )
            return conversation

    told = scenario(TEXT)
    plan = Plan(header=told.header, events=told.events, ledger="d", candidate=AGENT)
    with pytest.raises(SandboxError, match="No module named x") as error:
        replay(plan, NeverReady())
    assert error.value.slug == "agent-import"
    assert "\n" not in str(error.value)
    now = dataclasses.replace(plan, is_control=True)
    with pytest.raises(SandboxError, match=r"^the version that runs now cannot be replayed: "):
        replay(now, NeverReady())


def test_another_protocol_is_refused() -> None:
    class Newer:
        def start(self, agent: Path) -> Any:
            conversation = ScriptedSandbox(script=faithful).start(agent)
            line = conversation.receive() or b""
            conversation._lines.append(  # noqa: SLF001
                line.replace(b'"protocol": 1', b'"protocol": 2')
            )
            return conversation

    told = scenario(TEXT)
    plan = Plan(header=told.header, events=told.events, ledger="d", candidate=AGENT)
    with pytest.raises(WireError) as error:
        replay(plan, Newer())
    assert error.value.slug == "wire-protocol"


def test_an_error_on_the_way_is_always_one_of_ours() -> None:
    """Nothing that a candidate says comes out as anything but a reason or a `BackstopError`."""
    lines = [b"\xff\xfe", b"null", b'{"t":"step_done","id":5,"step":"s9","outcome":"done"}', b""]
    for line in lines:
        try:
            done = replayed(faithful, instead=[line])
        except BackstopError:
            continue
        assert done.runs[0].not_replayable


@dataclasses.dataclass(slots=True)
class Refusing:
    """A conversation of a candidate that cannot be imported."""

    closed: list[int]

    def send(self, line: bytes) -> None:
        """Nobody listens."""

    def receive(self) -> bytes | None:
        """The one thing that it says."""
        return b'{"t":"fault","slug":"agent-import","detail":"no"}'

    def close(self) -> None:
        """Note that it was."""
        self.closed.append(id(self))


def test_no_process_is_left_where_the_candidate_cannot_be_imported() -> None:
    """They are all started at once, one for each run."""
    closed: list[int] = []

    class Sandbox:
        def start(self, agent: Path) -> Refusing:
            return Refusing(closed)

    text = "".join(
        f"run r{n}\nstep s\nread check{{po: 7}} -> free\nadvance\nclose complete\n" for n in (1, 2)
    )
    told = scenario(f"tool check reads\n{text}")
    plan = Plan(header=told.header, events=told.events, ledger="d", candidate=AGENT, workers=4)
    with pytest.raises(SandboxError, match="no"):
        replay(plan, Sandbox())
    assert len(set(closed)) == len(closed) == 2
