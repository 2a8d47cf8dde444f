"""The effect gate as a pure function: what is withheld, what a break does, who lets go."""

from __future__ import annotations

from itertools import product
from math import inf, nan

import msgspec
import pytest

from backstop.core.checkpoint import DepKind
from backstop.core.effectgate import (
    SKEW_S,
    Break,
    Control,
    Frozen,
    Lease,
    LeaseLost,
    PastHorizon,
    Place,
    Precondition,
    Reach,
    StaleEpoch,
    Times,
    Unverified,
    broken,
    judged,
    thawed,
    withheld,
)
from backstop.core.effecttrust import ACTS, Act, Gated, Ruled, Trust, acted, trust_in
from backstop.core.trust import Badness, Reason, State, Verdict
from backstop.core.trustbreak import Inputs, Selector, Steps, TrustBreak
from backstop.errors import BackstopError

PLACE = Place(run="r", step="publish", agent="desk", upstream=("stats",))
HERE = Reach(run="r", steps=frozenset({"publish"}))
TIMES = Times(now=100.0)


def found(name: str = "b1", selector: Selector | None = None) -> TrustBreak:
    steps = selector or Steps(steps=("history",))
    return TrustBreak(id=name, seq=9, epoch=0, detector="age", reason="stale", selector=steps)


def breaking(*reaches: Reach) -> Control:
    """Trust broke once for each reach."""
    control = Control()
    for number, reach in enumerate(reaches):
        control, _ = broken(control, found(f"b{number}"), run="r", reach=[reach])
    return control


def asks(epoch: int = 0, **said: object) -> Precondition:
    return msgspec.structs.replace(Precondition(place=PLACE, epoch=epoch), **said)


def verdict(state: State, horizon: float = inf, culprit: str | None = None) -> Verdict:
    return Verdict(state, Reason.STALE, Badness.CLEAN, Badness.CLEAN, horizon, culprit)


@pytest.mark.parametrize("state", [state for state in State if state is not State.VERIFIED])
def test_only_what_is_verified_gets_a_precondition(state: State) -> None:
    refused = judged(verdict(state, culprit="history"), PLACE, epoch=3)
    assert refused == Unverified(state=state, reason="stale", culprit="history")
    assert judged(verdict(state), PLACE, epoch=3) == msgspec.structs.replace(
        refused, culprit="publish"
    )
    asked = judged(verdict(State.VERIFIED, 50.0), PLACE, epoch=3, undo="m.withdraw")
    assert asked == Precondition(place=PLACE, epoch=3, horizon=50.0, undo="m.withdraw")


def test_what_holds_is_not_withheld() -> None:
    assert withheld(Control(), asks(), TIMES) is None
    assert withheld(Control(), asks(horizon=100.5), TIMES) is None
    elsewhere = breaking(
        Reach(run="r2", everything=True), Reach(run="r", steps=frozenset({"scout"}))
    )
    assert withheld(elsewhere, asks(2), TIMES) is None
    for whole in (Reach(run="r", everything=True), Reach(everything=True)):
        assert isinstance(withheld(breaking(whole), asks(1), TIMES), Frozen)


@pytest.mark.parametrize("horizon", [100.0, 99.0, -inf, nan])
def test_a_horizon_that_is_reached_or_is_no_time_is_past(horizon: float) -> None:
    refused = withheld(Control(), asks(horizon=horizon), TIMES)
    assert isinstance(refused, PastHorizon)
    assert (refused.now, refused.seen) == (100.0, 0.0)


def test_a_clock_that_was_turned_back_makes_nothing_fresh_again() -> None:
    fresh = asks(horizon=1000.0)
    assert withheld(Control(), fresh, Times(now=100.0, seen=100.0 + SKEW_S)) is None
    assert isinstance(
        withheld(Control(), fresh, Times(now=100.0, seen=100.1 + SKEW_S)), PastHorizon
    )
    # What was seen counts for evidence that is over by then, however little it is.
    over = asks(horizon=101.0)
    assert isinstance(withheld(Control(), over, Times(now=100.0, seen=101.0)), PastHorizon)
    # What holds for ever asks no clock.
    assert withheld(Control(), asks(), Times(now=0.0, seen=1e9)) is None


@pytest.mark.parametrize("now", [nan, inf])
def test_a_clock_that_tells_no_time_lets_nothing_with_a_horizon_out(now: float) -> None:
    assert isinstance(withheld(Control(), asks(horizon=1e12), Times(now=now)), PastHorizon)


def test_the_first_thing_that_does_not_hold_is_told() -> None:
    control = breaking(HERE)
    lease = Lease(run="r", holder="w", fence=1)
    everything = asks(0, horizon=1.0, lease=lease)
    assert withheld(control, everything, TIMES, fence=2) == LeaseLost(fence=2)
    assert isinstance(withheld(control, everything, TIMES, fence=1), PastHorizon)
    assert withheld(control, asks(0), TIMES) == StaleEpoch(judged=0, epoch=1)
    assert withheld(control, asks(1), TIMES) == Frozen(broken="b0", reason="stale")
    assert withheld(control, asks(1, undoes="k"), TIMES) is None


def test_a_break_raises_the_epoch_once_and_says_so_itself() -> None:
    control, one = broken(Control(), found(), run="r", reach=[HERE])
    assert (control.epoch, one.broken.epoch, one.frozen) == (1, 1, (HERE,))
    assert broken(control, found(), run="r2", reach=[]) == (control, one)
    assert control.known("b2") is None
    later, two = broken(control, found("b2"), run="r", reach=[])
    assert (later.epoch, later.breaks) == (2, (one, two))


@pytest.mark.parametrize(
    "nothing",
    [
        pytest.param(found(""), id="no id"),
        pytest.param(found(selector=Steps(steps=())), id="no steps"),
        pytest.param(msgspec.structs.replace(found(""), detector=""), id="nobody found it"),
    ],
)
def test_a_break_that_names_nothing_is_refused(nothing: TrustBreak) -> None:
    with pytest.raises(BackstopError) as caught:
        broken(Control(), nothing, run="r", reach=[HERE])
    assert caught.value.slug == "trust-break"
    assert "\n" not in str(caught.value)


def test_a_break_of_an_input_may_reach_nothing_yet() -> None:
    selector = Inputs(kind=DepKind.EVIDENCE, ref="history", digest="d")
    control, _ = broken(Control(), found(selector=selector), run="r", reach=[])
    assert withheld(control, asks(1), TIMES) is None


def test_letting_go_is_exact() -> None:
    both = Reach(run="r", steps=frozenset({"publish", "mail"}), agents=frozenset({"desk"}))
    other = Reach(run="r2", everything=True)
    control = breaking(both, other)

    def left(*parts: Reach) -> list[tuple[Reach, ...]]:
        after = thawed(control, parts, epoch=2)
        assert after is not None
        return [one.frozen for one in after.breaks]

    rest = Reach(run="r", steps=frozenset({"mail"}), agents=frozenset({"desk"}))
    assert left(HERE) == [(rest,), (other,)]
    assert left(Reach(run="r", everything=True)) == [(), (other,)]
    assert left(both) == [(), (other,)]
    assert left(Reach(run="r", everything=True), other) == [(), ()]
    assert left(Reach(run="r")) == [(both,), (other,)]
    # Of a run that is frozen as a whole, steps cannot be let go one by one.
    assert left(Reach(run="r2", steps=frozenset({"x"})))[1] == (other,)
    assert [one.reach for one in control.breaks] == [(both,), (other,)]
    assert thawed(control, [both], epoch=1) is None


def test_an_effect_is_suspect_by_breaks_after_it_was_judged_and_by_no_others() -> None:
    control = breaking(HERE, Reach(run="r2", everything=True))
    before = Gated(place=PLACE, epoch=0)
    assert trust_in(before, control) is Trust.SUSPECT
    assert trust_in(Gated(place=PLACE, epoch=1, decided=1), control) is Trust.CLEAN
    again = msgspec.structs.replace(before, trust=Trust.REAFFIRMED)
    assert trust_in(again, control) is Trust.SUSPECT
    for decided in (Trust.ESCALATED, Trust.COMPENSATED, Trust.COMPENSATION_REQUIRED):
        stays = msgspec.structs.replace(before, trust=decided)
        assert trust_in(stays, control) is decided


def test_thawing_forgives_nothing() -> None:
    control = thawed(breaking(HERE), [HERE], epoch=1)
    assert control is not None
    assert trust_in(Gated(place=PLACE, epoch=0), control) is Trust.SUSPECT


@pytest.mark.parametrize(("now", "act"), list(product(Trust, Act)))
def test_what_is_not_in_the_table_cannot_be_done(now: Trust, act: Act) -> None:
    control = breaking(HERE)
    stored = Trust.CLEAN if now is Trust.SUSPECT else now
    decided = 0 if now is Trust.SUSPECT else 1
    gated = Gated(place=PLACE, epoch=0, trust=stored, decided=decided, note="before")
    assert trust_in(gated, control) is now
    ruled = Ruled(key="k" * 20, act=act, note="because")
    if (now, act) in ACTS:
        after = acted(gated, ruled, control)
        assert (after.trust, after.decided, after.note) == (ACTS[now, act], 1, "because")
        assert trust_in(after, control) is ACTS[now, act]
        assert acted(after, ruled, control) == after or (ACTS[now, act], act) in ACTS
    else:
        with pytest.raises(BackstopError, match=now.value) as caught:
            acted(gated, ruled, control)
        assert caught.value.slug == "effect-trust"


def test_nothing_is_ruled_about_what_never_passed_the_gate() -> None:
    with pytest.raises(BackstopError, match="never passed the gate"):
        acted(None, Ruled(key="k", act=Act.KEEP), Control())


def test_a_control_state_is_the_same_when_it_was_kept() -> None:
    control = breaking(HERE, Reach(everything=True))
    kept = msgspec.json.decode(msgspec.json.encode(control), type=Control)
    assert kept == control
    assert isinstance(kept.breaks[0], Break)
