"""The effect gate: what every store promises of claims that come with a precondition."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Barrier, Thread

import msgspec
import pytest

from backstop.core.effectgate import (
    Frozen,
    PastHorizon,
    Place,
    Reach,
    StaleEpoch,
)
from backstop.core.effecttrust import Trust
from backstop.core.events import EffectClaimed, TrustBroken
from backstop.errors import BackstopError
from backstop.ports import Answer, Claim, Held
from tests.contract.bench import START, Bench, header
from tests.contract.deeds import granted, pay
from tests.contract.gated import claims, publishes
from tests.contract.meshed import (
    STEP,
    breaks,
    found,
    judged,
    leased,
    recovers,
    trusts,
)

NOW = START.timestamp()


def test_a_ledger_without_a_mesh_has_an_empty_control_state(bench: Bench) -> None:
    control = bench.store.control()
    assert (control.epoch, control.breaks) == (0, ())
    assert trusts(bench.store) == {}
    assert list(bench.store.read()) == []


def test_a_free_key_is_executed_as_without_a_mesh(bench: Bench) -> None:
    assert claims(bench, judged()) == Claim(run="r1", key="k1", owner="alice", fence=1)
    assert claims(bench, judged(), "bob") == Held(owner="alice")
    assert trusts(bench.store) == {"k1": Trust.CLEAN}


def test_a_verdict_of_an_earlier_epoch_is_stale_wherever_trust_broke(bench: Bench) -> None:
    assert breaks(bench.store, "b1", "elsewhere") == 1
    assert claims(bench, judged(0)) == StaleEpoch(judged=0, epoch=1)
    assert [type(event) for event in bench.store.read()] == [TrustBroken]
    assert isinstance(claims(bench, judged(1)), Claim)


def test_a_verdict_of_an_epoch_that_never_was_is_stale_as_well(bench: Bench) -> None:
    assert claims(bench, judged(7)) == StaleEpoch(judged=7, epoch=0)


def test_a_frozen_step_is_withheld_until_it_is_recovered(bench: Bench) -> None:
    breaks(bench.store)
    assert claims(bench, judged(1)) == Frozen(broken="b1", reason="the history snapshot is stale")
    assert trusts(bench.store) == {}
    assert isinstance(claims(bench, judged(recovers(bench.store))), Claim)


@pytest.mark.parametrize(
    "reach",
    [
        pytest.param(Reach(run="r1", everything=True), id="the whole run"),
        pytest.param(Reach(everything=True), id="every run"),
        pytest.param(Reach(run="r1", agents=frozenset({"desk"})), id="its agent"),
        pytest.param(Reach(run="r1", steps=frozenset({"stats/model.0"})), id="what it read"),
    ],
)
def test_an_effect_is_frozen_by_its_run_its_agent_or_what_it_was_made_from(
    bench: Bench, reach: Reach
) -> None:
    bench.store.break_trust(found(), run="r1", reach=[reach])
    assert isinstance(claims(bench, judged(1)), Frozen)
    lease = leased(bench.store)
    assert bench.store.thaw([reach], lease=lease, epoch=1)
    assert isinstance(claims(bench, judged(1)), Claim)


def test_what_another_run_or_agent_does_is_not_frozen(bench: Bench) -> None:
    elsewhere = [
        Reach(run="r2", everything=True),
        Reach(run="r1"),
        Reach(run="r1", agents=frozenset({"scout"})),
        Reach(run="r1", steps=frozenset({"scout/history.0"})),
    ]
    bench.store.break_trust(found(), run="r1", reach=elsewhere)
    assert isinstance(claims(bench, judged(1)), Claim)


def test_an_older_recovery_does_not_let_go_what_a_later_break_froze(bench: Bench) -> None:
    first, second = breaks(bench.store, "b1"), breaks(bench.store, "b2")
    reach = [Reach(run="r1", steps=frozenset({STEP}))]
    assert not bench.store.thaw(reach, lease=leased(bench.store), epoch=first)
    assert isinstance(claims(bench, judged(second)), Frozen)
    assert bench.store.thaw(reach, lease=leased(bench.store), epoch=second)
    assert isinstance(claims(bench, judged(second)), Claim)


def test_part_of_what_is_frozen_can_be_let_go(bench: Bench) -> None:
    epoch = breaks(bench.store, "b1", STEP, "desk/mail.0")
    recovers(bench.store, "desk/mail.0")
    assert isinstance(claims(bench, judged(epoch)), Frozen)
    mail = judged(epoch, place=Place(run="r1", step="desk/mail.0"))
    assert isinstance(bench.store.claim(pay(key="k2"), mail), Claim)


def test_a_verdict_holds_before_its_horizon_and_not_at_it(bench: Bench) -> None:
    far = judged(horizon=4e9)  # of the service's time, which nobody here sets
    assert isinstance(claims(bench, far), Claim)
    past = claims(bench, judged(horizon=NOW - 1), "bob")
    assert isinstance(past, PastHorizon)
    assert past.horizon == NOW - 1
    assert past.now >= past.horizon


def test_nothing_is_written_by_a_claim_that_is_withheld(bench: Bench) -> None:
    claims(bench, judged(horizon=NOW - 1))
    claims(bench, judged(3))
    assert list(bench.store.read()) == []
    assert list(bench.store.standings("k1")) == []
    assert trusts(bench.store) == {}
    granted(bench.store, pay())


def test_not_even_a_recorded_outcome_is_told_to_who_is_not_verified(bench: Bench) -> None:
    publishes(bench)
    breaks(bench.store)
    assert isinstance(claims(bench, judged(0), "bob"), StaleEpoch)
    assert isinstance(claims(bench, judged(1), "bob"), Frozen)
    assert trusts(bench.store) == {"k1": Trust.SUSPECT}


def test_a_break_is_kept_for_good_and_told_once(bench: Bench) -> None:
    assert breaks(bench.store, "b1") == 1
    assert breaks(bench.store, "b1", "something/else.0") == 1
    assert breaks(bench.store, "b2") == 2
    other = bench.reopen(header())
    assert other.control() == bench.store.control()
    assert [one.broken.id for one in other.control().breaks] == ["b1", "b2"]
    assert [one.broken.epoch for one in other.control().breaks] == [1, 2]
    told = [event for event in other.read("r1") if isinstance(event, TrustBroken)]
    assert [msgspec.json.decode(event.body)["broken"]["id"] for event in told] == ["b1", "b2"]


def test_a_person_who_only_looks_sees_the_breaks(bench: Bench) -> None:
    breaks(bench.store)
    publishes(bench, judged(recovers(bench.store)))
    seen = bench.reopen(None)
    assert seen.control().epoch == 1
    assert trusts(seen) == {"k1": Trust.CLEAN}


def test_a_break_that_names_nothing_is_refused_and_changes_nothing(bench: Bench) -> None:
    nothing = msgspec.structs.replace(found(), id="")
    with pytest.raises(BackstopError) as caught:
        bench.store.break_trust(nothing, run="r1", reach=[Reach(run="r1")])
    assert caught.value.slug == "trust-break"
    assert bench.store.control().epoch == 0
    assert list(bench.store.read()) == []


def test_a_large_break_is_kept_whole(bench: Bench) -> None:
    steps = [f"agent/step.{number:06}" for number in range(20_000)]
    breaks(bench.store, "b1", *steps)
    breaks(bench.store, "b2", "agent/last.0")
    seen = bench.reopen(header()).control()
    assert seen.breaks[0].frozen[0].steps == frozenset(steps)
    place = Place(run="r1", step=steps[-1])
    assert isinstance(claims(bench, judged(2, place=place)), Frozen)
    assert isinstance(claims(bench, judged(2)), Claim)


def test_of_many_gated_claims_at_once_one_is_granted(bench: Bench) -> None:
    answers: list[object] = []
    gate = Barrier(6)

    def race(owner: str) -> None:
        gate.wait()
        answers.append(bench.store.claim(pay(owner), judged()))

    threads = [Thread(target=race, args=(f"owner-{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(answer, Claim) for answer in answers) == 1
    assert sum(isinstance(answer, Held) for answer in answers) == 5


def raced(claim: Callable[[], Claim | Answer], other: Callable[[], object]) -> Claim | Answer:
    """What the claim comes to that is made at the same time as something else."""
    gate = Barrier(2)
    answers: list[Claim | Answer] = []

    def first() -> None:
        gate.wait()
        answers.append(claim())

    def second() -> None:
        gate.wait()
        other()

    threads = [Thread(target=first), Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (answer,) = answers
    return answer


def test_a_break_that_races_a_claim_is_before_it_or_the_effect_is_suspect(bench: Bench) -> None:
    """None goes out that is neither withheld nor known to be suspect."""
    for number in range(6):
        key, name = f"key-{number}", f"break-{number}"
        epoch = bench.store.control().epoch
        place = Place(run="r1", step=f"step-{number}")
        asked = judged(epoch, place=place)
        answer = raced(
            partial(bench.store.claim, pay(key=key), asked),
            partial(breaks, bench.store, name, place.step),
        )
        if isinstance(answer, Claim):
            assert trusts(bench.store)[key] is Trust.SUSPECT
        else:
            assert isinstance(answer, StaleEpoch)
            assert key not in trusts(bench.store)
    assert bench.store.control().epoch == 6


def test_what_the_gate_lets_through_is_in_the_ledger_like_any_claim(bench: Bench) -> None:
    publishes(bench)
    kinds = [type(event) for event in bench.store.read("r1")]
    assert kinds[0] is EffectClaimed
    pulled = [
        each
        for part in bench.store.parts(bench.clock.now())
        for each in bench.store.pull(part, at=bench.clock.now())
    ]
    assert len(pulled) == 2
