"""The guard asks the mesh: what its verdicts say is what goes out, and what an agent is told."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.canon import digest
from backstop.core.checkpoint import Dep, DepKind, StepKind
from backstop.core.effectgate import (
    Frozen,
    LeaseLost,
    PastHorizon,
    Place,
    Precondition,
    Reach,
    StaleEpoch,
    Unverified,
    judged,
)
from backstop.core.effecttrust import Trust
from backstop.core.events import CallAnswered, EffectClaimed
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.errors import BackstopError
from backstop.guard.claims.claim import perform_now
from backstop.guard.claims.desk import Produced, how
from backstop.guard.claims.watched import Watched
from backstop.guard.results import told
from backstop.guard.workers.standdown import StandDown
from backstop.ports import Answer, Conflict, Held, Judge, Recorded
from tests.unit.core.mesh.desk import Desk
from tests.unit.guard.claiming import PAID, World, pay

EFFECT: Final = "send"


class OfVerdicts:
    """A judge that asks the core about the effect's step, as the records stand."""

    def __init__(self, world: World, desk: Desk) -> None:
        self.world = world
        self.desk = desk
        self.asked = 0

    @property
    def now(self) -> float:
        return self.world.watch.time.timestamp()

    def judge(self, intent: EffectClaimed) -> Precondition | Unverified:
        self.asked += 1
        epoch = self.world.store.control().epoch
        upstream = tuple(dep.ref for dep in self.desk.graph[EFFECT].upstream)
        place = Place(run=intent.run, step=EFFECT, agent="desk", upstream=upstream)
        return judged(self.desk.at(EFFECT, self.now), place, epoch=epoch)


class Fleet:
    """A run of three steps, and an effect at its end that goes out through the guard."""

    def __init__(self) -> None:
        self.world = World()
        self.desk = Desk()
        self.judge = OfVerdicts(self.world, self.desk)
        self.step("history", StepKind.TOOL, [], "rows", ttl=3600)
        self.step("stats", StepKind.MODEL, ["history"], "mean 4")
        self.effect()

    def step(
        self, step: str, kind: StepKind, reads: list[str], answer: str, **said: object
    ) -> None:
        self.desk.step(step, kind, reads, {"v": answer}, at=self.judge.now, **said)  # type: ignore[arg-type]  # a record's words

    def effect(self, answer: str = "send it", **said: object) -> None:
        self.step(EFFECT, StepKind.EFFECT, ["stats"], answer, **said)

    def sends(self, owner: str = "alice", *, judge: Judge | None = None) -> Answer:
        def call() -> Produced:
            self.world.paid.append(owner)
            return PAID

        store = Watched(self.world.store, judge=judge or self.judge, key="k1")
        return perform_now(store, pay(owner), call)

    def breaks(self, *steps: str, seq: int = 50) -> None:
        """These steps turn out to be bad, and what was made from them is frozen."""
        found = TrustBreak(
            id=f"b{self.world.store.control().epoch + 1}",
            seq=seq,
            epoch=0,
            detector="a person",
            reason="it was poisoned",
            selector=Steps(steps=steps),
        )
        reached = frozenset(self.desk.graph.blast(steps))
        reach = [Reach(run="r1", steps=reached)]
        control = self.world.store.break_trust(found, run="r1", reach=reach)
        self.desk.breaks = [one.broken for one in control.breaks]

    def recovers(self) -> None:
        """All that was reached was run again."""
        store = self.world.store
        lease = store.lease("r1", "worker", lease_s=30)
        assert not isinstance(lease, Held)
        whole = [Reach(run="r1", steps=frozenset(self.desk.graph))]
        assert store.thaw(whole, lease=lease, epoch=store.control().epoch)
        store.release(lease)

    def answers(self) -> list[str]:
        return [event.how for event in self.world.store.read() if isinstance(event, CallAnswered)]


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def test_what_is_verified_goes_out_once(fleet: Fleet) -> None:
    assert fleet.sends() == Recorded(result=PAID.result)
    assert fleet.sends("bob") == Recorded(result=PAID.result)
    assert fleet.world.paid == ["alice"]


def test_m19_what_waits_on_a_poisoned_memory_is_not_sent(fleet: Fleet) -> None:
    """M19: the memory is INVALIDATED, what was made from it RECOMPUTE, and the send BLOCKED."""
    fleet.breaks("history")
    answer = fleet.sends()
    assert answer == Unverified(state="BLOCKED", reason="input not verified", culprit="history")
    assert fleet.world.paid == []
    assert fleet.answers() == ["withheld"]


def test_m24_what_was_queued_on_half_an_input_waits_until_it_was_run_again(fleet: Fleet) -> None:
    """M24: a runs for the first time after b used what there was of it."""
    fleet.step("history", StepKind.TOOL, [], "all rows", gen=1)
    assert isinstance(fleet.sends(), Unverified)
    fleet.step("stats", StepKind.MODEL, ["history"], "mean 5", gen=1)
    assert isinstance(fleet.sends(), Unverified)
    fleet.effect(gen=1)
    assert isinstance(fleet.sends(), Recorded)
    assert fleet.world.paid == ["alice"]


def test_m15_a_rule_that_tightened_while_the_call_waited_holds_at_dispatch(fleet: Fleet) -> None:
    """M15: approved under one policy, another one forbids when it is dispatched."""
    fleet.desk.pins[DepKind.POLICY, "publishing"] = digest("p2")
    answer = fleet.sends()
    assert isinstance(answer, Unverified)
    assert fleet.world.paid == []


def test_m15_an_approval_is_over_when_its_evidence_is(fleet: Fleet) -> None:
    """M15: its expiry is looked at again, by the store, when the call is dispatched."""
    early = fleet.judge.judge(pay())
    assert isinstance(early, Precondition)
    fleet.world.watch.wait(3600)
    answer = fleet.world.store.claim(pay(), early)
    assert isinstance(answer, PastHorizon)
    assert isinstance(fleet.sends(), Unverified)
    assert fleet.world.paid == []


@pytest.mark.parametrize("kind", [DepKind.POLICY, DepKind.TOOL])
def test_m16_m23_m35_what_was_approved_under_other_terms_is_asked_for_anew(
    fleet: Fleet, kind: DepKind
) -> None:
    """M16, M23, M35: the policy's metadata, or the tool's schema, changed while it waited."""
    fleet.desk.pins[kind, "terms"] = digest("terms 1")
    terms = Dep(kind, "terms", digest("terms 1"))
    fleet.effect(gen=1, outside=(*fleet.desk.graph[EFFECT].outside, terms))
    assert not isinstance(fleet.judge.judge(pay()), Unverified)
    fleet.desk.pins[kind, "terms"] = digest("terms 2")
    assert isinstance(fleet.sends(), Unverified)
    assert fleet.world.paid == []


def test_m37_a_policy_that_names_no_class_of_approvals_voids_them_and_says_why(
    fleet: Fleet,
) -> None:
    """M37: INVALIDATED, so asked again; the reason is told."""
    fleet.desk.pins[DepKind.POLICY, "publishing"] = digest("p2")
    answer = told(fleet.sends())
    assert answer["backstop"] == "unverified"
    assert "policy changed" in answer["reason"] or "input not verified" in answer["reason"]


def test_m40_a_step_that_cites_what_is_bad_is_refused_however_late(fleet: Fleet) -> None:
    """M40: by what it depends on, not by what its text looks like."""
    fleet.breaks("history")
    fleet.recovers()
    fleet.effect("send it in other words", gen=1)
    assert isinstance(fleet.sends(), Unverified)


def test_m44_a_rule_that_cannot_be_read_lets_nothing_out(fleet: Fleet) -> None:
    """M44: BLOCKED, not a crash and not an allowance."""
    del fleet.desk.pins[DepKind.POLICY, "publishing"]
    answer = fleet.sends()
    assert isinstance(answer, Unverified)
    assert answer.state == "BLOCKED"
    assert fleet.world.paid == []


def test_m45_a_late_answer_of_the_old_branch_lets_nothing_out(fleet: Fleet) -> None:
    """M45: the old step's answer comes late, and is of an older attempt."""
    fleet.step("history", StepKind.TOOL, [], "new rows", gen=1)
    fleet.step("stats", StepKind.MODEL, ["history"], "mean 9", gen=2)
    fleet.step("stats", StepKind.MODEL, ["history"], "mean 4", gen=1)
    assert isinstance(fleet.sends(), Unverified)


def test_m41_a_result_from_before_the_break_is_recorded_and_not_given_to_the_new_branch(
    fleet: Fleet,
) -> None:
    """M41: the call was made; its outcome is kept, and told only to who is verified."""
    fleet.sends()
    fleet.breaks("history")
    assert isinstance(fleet.sends("bob"), Unverified)
    (effect,) = fleet.world.store.out()
    assert effect.trust is Trust.SUSPECT


def test_a_break_between_verdict_and_claim_is_judged_anew_and_then_holds(fleet: Fleet) -> None:
    class Overtaken:
        """Trust breaks elsewhere each time a verdict was made."""

        def __init__(self, times: int) -> None:
            self.times = times

        def judge(self, intent: EffectClaimed) -> Precondition | Unverified:
            asked = fleet.judge.judge(intent)
            if self.times:
                self.times -= 1
                fleet.breaks("elsewhere")
            return asked

    assert isinstance(fleet.sends(judge=Overtaken(times=2)), Recorded)
    fleet.world.paid.clear()
    other = Fleet()
    fleet = other
    assert isinstance(other.sends(judge=Overtaken(times=3)), StaleEpoch)
    assert other.judge.asked == 3
    assert other.world.paid == []


def test_a_frozen_effect_goes_out_once_its_branch_was_recovered(fleet: Fleet) -> None:
    fleet.breaks("history")
    for step, kind, reads in (
        ("history", StepKind.TOOL, []),
        ("stats", StepKind.MODEL, ["history"]),
        (EFFECT, StepKind.EFFECT, ["stats"]),
    ):
        fleet.step(step, kind, reads, f"{step} anew", gen=1, seq=60)
    assert isinstance(fleet.sends(), Frozen)
    fleet.recovers()
    assert isinstance(fleet.sends(), Recorded)
    assert fleet.world.paid == ["alice"]


class Broken:
    """A judge that cannot judge."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def judge(self, intent: EffectClaimed) -> Precondition | Unverified:
        raise self.error


def test_a_judge_that_raises_lets_nothing_out(fleet: Fleet) -> None:
    answer = fleet.sends(judge=Broken(ZeroDivisionError("no")))
    assert answer == Unverified(state="BLOCKED", reason="check error", culprit="ZeroDivisionError")
    with pytest.raises(BackstopError, match="out of reach"):
        fleet.sends(judge=Broken(BackstopError("out of reach", slug="store-down")))
    assert fleet.world.paid == []
    assert list(fleet.world.store.standings("k1")) == []


def test_only_the_call_itself_is_judged_and_not_the_names_it_is_barred_under(fleet: Fleet) -> None:
    store = Watched(fleet.world.store, judge=Broken(ZeroDivisionError("no")), key="k1")
    bar = msgspec.structs.replace(pay(), key="another")
    assert not isinstance(store.claim(bar), Unverified)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (Frozen(broken="b1", reason="stale"), "frozen", "trust break b1 (stale)"),
        (StaleEpoch(judged=1, epoch=2), "stale_epoch", "epoch 1 against 2"),
        (PastHorizon(horizon=5, now=6, seen=6), "past_horizon", "past its time"),
        (PastHorizon(horizon=5, now=1, seen=6), "past_horizon", "turned back"),
        (Unverified(state="BLOCKED", reason="cycle"), "unverified", "BLOCKED: cycle;"),
        (Unverified(state="BLOCKED", reason="pin", culprit="a"), "unverified", "pin at a;"),
        (LeaseLost(fence=2), "lease_lost", "another worker"),
    ],
)
def test_an_agent_is_told_why_its_effect_is_withheld_and_that_nothing_was_done(
    answer: Answer, kind: str, words: str
) -> None:
    said = told(answer)
    assert said["backstop"] == kind
    assert words in said["reason"]
    assert said["reason"].endswith("nothing was done")
    assert how(answer) == "withheld"


def test_an_agent_is_told_that_what_was_done_is_to_be_taken_back() -> None:
    plain = Conflict(fingerprint="f", args=msgspec.Raw(b'{"to":"a"}'))
    assert "taken back" not in told(plain)["reason"]
    required = msgspec.structs.replace(plain, compensate=True)
    assert "taken back" in told(required)["reason"]


def test_who_was_withheld_one_effect_starts_no_other_of_its_step() -> None:
    """W05: it would act on what is not done, ahead of the attempt that may do it."""
    store = StandDown(MemoryStore(clock=World().watch))
    lost = CallAnswered(run="r1", at="", step="s0", tool="pay", key="k1", how="withheld")
    store.append(lost)
    other = msgspec.structs.replace(pay(), key="k2")
    assert isinstance(store.claim(other), Held)
    assert not isinstance(store.claim(pay()), Held)
