"""When a bounded view of the history is tried, when it counts, and when all is played again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest

from backstop.core.declaration import Namespace
from backstop.core.events import RequestDigests
from backstop.core.keying import Rules
from backstop.core.runs import RecordedRun, Step, recorded_runs
from backstop.replay.answers import Answers, Recording
from backstop.replay.driver import Played
from backstop.replay.models import Trust
from backstop.replay.passes import replay_run
from backstop.replay.window import window_for
from backstop.replay.wire import ModelAsked, Ready
from tests.dsl import scenario

READY: Final = Ready(id=1, protocol=1, adk="", python="", app="", agents=[], tools=[])
TEXT: Final = """
run r1
step s1
model desk -> one
advance
step s2
model desk -> two
advance
"""


def run_of(text: str) -> RecordedRun:
    runs, _ = recorded_runs(scenario(text).events)
    return runs["r1"]


def digests(name: str) -> RequestDigests:
    return RequestDigests(instruction="i", tools="t", contents=name, settings="s")


@dataclass(slots=True, kw_only=True)
class Candidate:
    """Asks its model once a step; `shows` says what the request holds, given the window."""

    shows: Callable[[Step, int | None], str]
    windows: list[int | None] = field(default_factory=list)

    def play(self, run: RecordedRun, steps: Sequence[Step], answers: Answers) -> Played:
        """Replay the steps."""
        self.windows.append(answers.window)
        for step in steps:
            answers.begin(step)
            request = digests(self.shows(step, answers.window))
            asked = {
                "instruction": request.instruction,
                "tools": request.tools,
                "contents": request.contents,
                "settings": request.settings,
            }
            reply = answers.model(ModelAsked(id=1, agent="desk", ordinal=0, **asked))
            if reply.missing:
                break
        return Played(digest=f"window {answers.window}")


def played(candidate: Candidate, *, closed: bool = True, known: bool = True) -> str:
    """The digest of the pass that counts."""
    run = run_of(TEXT + ("close complete\n" if closed else ""))
    proofs = {index: digests(step.id) for step in run.steps for index, _ in step.models}
    recording = Recording(
        run=run,
        rules=Rules(namespace=Namespace(agent="desk"), recorded={}, declared={}, candidate={}),
        trust=Trust(control=proofs if known else {}, handed=proofs if known else {}, unknown=True),
        window=2,
    )
    outcome = replay_run(recording, candidate.play)
    assert outcome.replayed.not_replayable is None
    return outcome.digest


def test_a_pass_whose_every_request_is_the_recorded_one_counts() -> None:
    candidate = Candidate(shows=lambda step, _: step.id)
    assert played(candidate) == "window 2"
    assert candidate.windows == [2]


def test_one_other_request_and_the_run_is_played_again_with_all_of_its_history() -> None:
    candidate = Candidate(
        shows=lambda step, window: "less" if window and step.id == "s2" else step.id
    )
    assert played(candidate) == "window None"
    assert candidate.windows == [2, None]


def test_requests_that_nobody_vouches_for_need_all_of_the_history() -> None:
    candidate = Candidate(shows=lambda step, _: step.id)
    assert played(candidate, known=False) == "window None"


def test_handover_tries_the_window_only_where_the_full_pass_held_with_it() -> None:
    good = Candidate(shows=lambda step, _: step.id)
    played(good, closed=False)
    assert good.windows == [2, 2, 2]
    bad = Candidate(shows=lambda step, window: "less" if window else step.id)
    played(bad, closed=False)
    assert bad.windows == [2, None, None, None]


@pytest.mark.parametrize(
    ("recent", "history", "window"),
    [(1, [], 1), (2, [], None), (0, [], None), (1, ["agent.py:3"], None)],
)
def test_it_is_tried_for_long_runs_of_code_that_does_not_look_at_the_history(
    recent: int, history: list[str], window: int | None
) -> None:
    ready = Ready(id=1, protocol=1, adk="", python="", app="", agents=[], tools=[], history=history)
    assert window_for(run_of(TEXT), ready, recent=recent) == window
