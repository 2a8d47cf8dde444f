"""The law of the gate, on every store: whatever happens, no rerun sends out what is out already."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backstop.core.effectgate import Lease, Place, Reach
from backstop.core.effecttrust import ACTS, Act, Ruled, Trust
from backstop.core.lifecycle import Lives, Phase
from backstop.errors import BackstopError
from backstop.ports import Claim, Recorded, Settlement
from tests.contract.bench import Bench
from tests.contract.deeds import committed, doubted, failed, pay
from tests.contract.meshed import found, judged

KEYS: Final = ("a", "b")
DEEDS: Final = (
    "ask",
    "ask for another",
    "ask unjudged",
    "commit",
    "fail",
    "doubt",
    "die",
    "break",
    "recover",
    "compensate",
    "escalate",
    "keep",
)

_stories = count()
"""No two examples share a run or a key: a store forgets nothing."""


@dataclass
class Story:
    """One run under way: what is really out, how often, and what was told."""

    bench: Bench
    run: str = field(default_factory=lambda: f"run-{next(_stories)}")
    out: Counter[str] = field(default_factory=Counter)
    open: dict[str, Claim] = field(default_factory=dict)
    owners: int = 0

    def key(self, name: str) -> str:
        return f"{self.run}-{name}"

    def ask(self, name: str, *, fingerprint: str = "f1", stale: int = 0) -> None:
        """A branch asks; what is granted is done at once, in the world."""
        self.owners += 1
        epoch = self.bench.store.control().epoch
        place = Place(run=self.run, step=f"step-{name}", agent="desk")
        intent = pay(
            f"{self.run}-owner-{self.owners}",
            key=self.key(name),
            run=self.run,
            fingerprint=fingerprint,
        )
        answer = self.bench.store.claim(intent, judged(epoch - stale, place=place))
        if isinstance(answer, Claim):
            assert stale == 0, "a verdict of another epoch is no verdict"
            assert not self.is_frozen(place), "what is frozen goes nowhere"
            self.out[name] += 1
            self.open[name] = answer
        elif isinstance(answer, Recorded):
            assert self.trust(name) not in {Trust.SUSPECT, Trust.COMPENSATION_REQUIRED}

    def is_frozen(self, place: Place) -> bool:
        return self.bench.store.control().freezing(place) is not None

    def trust(self, name: str) -> Trust | None:
        effects = self.bench.store.out(self.run)
        return next(
            (one.trust for one in effects if one.standing.claimed.key == self.key(name)), None
        )

    def settle(self, name: str, how: str) -> None:
        claim = self.open.pop(name, None)
        if claim is None:
            return
        events: dict[str, Settlement] = {
            "commit": committed(claim),
            "fail": failed(claim, final=False),
            "doubt": doubted(claim),
        }
        self.out[name] -= how == "fail"
        self.bench.store.settle(events[how], claim=claim)

    def rule(self, name: str, act: Act) -> None:
        lease = self.bench.store.lease(self.run, "worker", lease_s=30)
        assert isinstance(lease, Lease)
        before = self.trust(name)
        ruled = [Ruled(key=self.key(name), act=act)]
        if before is None or (before, act) not in ACTS:
            with suppress(BackstopError):
                self.bench.store.rule(ruled, lease=lease)
            assert self.trust(name) is before
            return
        self.bench.store.rule(ruled, lease=lease)
        if act is Act.COMPENSATE:
            self.out[name] -= 1

    def holds(self) -> None:
        """The law."""
        assert all(0 <= self.out[name] <= 1 for name in KEYS), self.out

    def do(self, deed: str, name: str) -> None:
        """One thing happens."""
        store = self.bench.store
        match deed:
            case "ask":
                self.ask(name)
            case "ask for another":
                self.ask(name, fingerprint="f2")
            case "ask unjudged":
                self.ask(name, stale=1)
            case "die" if name in self.open:
                self.bench.kill(self.open.pop(name).owner)
            case "break":
                reach = Reach(run=self.run, steps=frozenset({f"step-{name}"}))
                store.break_trust(found(f"b-{next(_stories)}"), run=self.run, reach=[reach])
            case "recover":
                lease = store.lease(self.run, "worker", lease_s=30)
                assert isinstance(lease, Lease)
                whole = [Reach(run=self.run, everything=True)]
                assert store.thaw(whole, lease=lease, epoch=store.control().epoch)
            case "compensate" if name not in self.open and self.is_committed(name):
                self.rule(name, Act.COMPENSATE)
            case "escalate":
                self.rule(name, Act.ESCALATE)
            case "keep":
                self.rule(name, Act.KEEP)
            case "commit" | "fail" | "doubt":
                self.settle(name, deed)
            case _:
                pass

    def is_committed(self, name: str) -> bool:
        standings = self.bench.store.standings(self.key(name))
        return any(one.phase is Phase.COMMITTED for one in standings)


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    deeds=st.lists(
        st.tuples(st.sampled_from(DEEDS), st.sampled_from(KEYS)), min_size=4, max_size=20
    )
)
def test_a_rerun_branch_never_sends_out_what_is_out_already(
    bench: Bench, deeds: list[tuple[str, str]]
) -> None:
    story = Story(bench)
    for deed, name in deeds:
        story.do(deed, name)
        story.holds()
    lives = Lives(guarded=True)
    assert [wrong for event in bench.store.read(story.run) if (wrong := lives.follow(event))] == []


class ByAttempt(Story):
    """Keys that tell attempts apart, as a call's id or a digest of all its words would."""

    def key(self, name: str) -> str:
        return f"{super().key(name)}-{self.owners}"


def test_the_law_goes_red_where_keys_tell_attempts_apart(bench: Bench) -> None:
    story = ByAttempt(bench)
    for deed in ("ask", "commit", "break", "recover"):
        story.do(deed, "a")
        story.holds()
    story.do("ask", "a")
    with pytest.raises(AssertionError):
        story.holds()


def test_a_story_does_what_it_says(bench: Bench) -> None:
    story = Story(bench)
    for deed in ("ask", "commit", "break", "ask", "recover", "ask for another", "compensate"):
        story.do(deed, "a")
    assert story.out["a"] == 0
    assert story.trust("a") is Trust.COMPENSATED
    story.do("ask for another", "a")
    assert story.out["a"] == 1
