"""The plan of what is taken back: last made first, and nothing from under what stays."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest

from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind
from backstop.core.compensation import Fate, Orphan, Task, compensation, fate_of, undoing
from backstop.core.declaration import Namespace
from backstop.core.effecttrust import Trust
from backstop.core.events import EffectClaimed, Header, RunClosed, RunOpened
from backstop.core.keycheck import Keys
from backstop.core.lifecycle import Phase
from backstop.core.order import Order
from backstop.core.trustgraph import TrustGraph

NAMESPACE = Namespace(agent="clerk")


def graph(**reads: str) -> TrustGraph:
    """Steps by name, and the steps that each was made from, in words."""
    made = TrustGraph()
    for step, above in reads.items():
        deps = tuple(Dep(DepKind.UPSTREAM, one, f"d-{one}") for one in above.split())
        made.put(
            Checkpoint(
                run="r",
                step=step,
                kind=StepKind.EFFECT,
                output=f"d-{step}",
                producer="p",
                observed_at=0.0,
                deps=deps,
            )
        )
    return made


CHAIN = graph(order="", ship="order", mail="ship", other="")


def orphan(step: str, place: int, **said: object) -> Orphan:
    one = Orphan(
        key=f"k-{step}-{place}",
        step=step,
        trust=Trust.SUSPECT,
        phase=Phase.COMMITTED,
        undo="m.undo",
        place=place,
    )
    return msgspec.structs.replace(one, **said)


def keys(tasks: tuple[Task, ...]) -> list[str]:
    return [task.key for task in tasks]


@pytest.mark.parametrize("arrived", list(permutations(["order", "ship", "mail"])))
def test_what_was_made_last_is_taken_back_first_in_whatever_order_they_were_claimed(
    arrived: tuple[str, ...],
) -> None:
    orphans = [orphan(step, place) for place, step in enumerate(arrived)]
    tasks = compensation(orphans, CHAIN)
    assert [key.split("-")[1] for key in keys(tasks)] == ["mail", "ship", "order"]
    assert tasks[0].after == ()
    assert len(tasks[2].after) == 2


def test_two_effects_of_one_step_go_back_the_way_they_came() -> None:
    tasks = compensation([orphan("ship", 0), orphan("ship", 1), orphan("order", 2)], CHAIN)
    assert keys(tasks) == ["k-ship-1", "k-ship-0", "k-order-2"]


def test_effects_that_have_nothing_to_do_with_each_other_wait_for_nobody() -> None:
    tasks = compensation([orphan("mail", 0), orphan("other", 1)], CHAIN)
    assert [task.after for task in tasks] == [(), ()]


@pytest.mark.parametrize(
    "unknown",
    [
        pytest.param(graph(order="", ship="order"), id="a step that is not recorded"),
        pytest.param(graph(order="mail", ship="order", mail="ship"), id="a cycle"),
    ],
)
def test_where_nobody_knows_what_was_made_from_what_the_last_one_goes_first(
    unknown: TrustGraph,
) -> None:
    orphans = [orphan("ship", 0), orphan("mail", 1), orphan("order", 2)]
    tasks = compensation(orphans, unknown)
    assert keys(tasks) == ["k-order-2", "k-mail-1", "k-ship-0"]
    assert tasks[2].after == ("k-mail-1", "k-order-2")


@pytest.mark.parametrize("trust", [Trust.CLEAN, Trust.REAFFIRMED, Trust.COMPENSATED])
def test_what_is_stood_by_or_gone_is_left_alone(trust: Trust) -> None:
    assert compensation([orphan("order", 0, trust=trust)], CHAIN) == ()


@pytest.mark.parametrize(
    "phase", [Phase.ABSENT, Phase.CLAIMED, Phase.RETRYABLE, Phase.REOPENED, Phase.FAILED]
)
def test_what_never_went_out_needs_no_undo(phase: Phase) -> None:
    assert compensation([orphan("order", 0, phase=phase)], CHAIN) == ()


@pytest.mark.parametrize(
    ("said", "fate"),
    [
        ({"undo": ""}, Fate.ESCALATE),
        ({"phase": Phase.IN_DOUBT}, Fate.ESCALATE),
        ({"phase": Phase.EXECUTING}, Fate.WAIT),
        ({"trust": Trust.COMPENSATION_REQUIRED}, Fate.UNDO),
    ],
)
def test_what_can_be_taken_back_is_told_from_what_a_person_must_see(
    said: dict[str, object], fate: Fate
) -> None:
    (task,) = compensation([orphan("order", 0, **said)], CHAIN)
    assert fate_of(task, {})[0] is fate
    assert bool(task.why) is (fate is not Fate.UNDO)


def test_nothing_is_taken_from_under_what_stays() -> None:
    orphans = [orphan("order", 0), orphan("ship", 1), orphan("mail", 2)]
    mail, ship, order = compensation(orphans, CHAIN)
    done = {mail.key: Fate.UNDO}
    assert fate_of(ship, done) == (Fate.UNDO, "")
    assert fate_of(order, done | {ship.key: Fate.ESCALATE})[0] is Fate.ESCALATE
    assert ship.key[:12] in fate_of(order, done | {ship.key: Fate.ESCALATE})[1]
    assert fate_of(order, done | {ship.key: Fate.WAIT})[0] is Fate.WAIT
    assert fate_of(order, done | {ship.key: Fate.UNDO})[0] is Fate.UNDO


def test_what_a_person_has_already_holds_back_what_it_was_made_from() -> None:
    orphans = [orphan("order", 0), orphan("ship", 1, trust=Trust.ESCALATED)]
    (task,) = compensation(orphans, CHAIN)
    assert task.key == "k-order-0"
    assert fate_of(task, {})[0] is Fate.ESCALATE


def test_an_undo_is_an_effect_of_its_own_within_the_one_that_it_takes_back() -> None:
    claimed = EffectClaimed(
        run="r", at="", step="s0", tool="publish", key="k" * 64, fingerprint="f", agent="desk"
    )
    undo = undoing(claimed, fence=1, owner="w/recovery.1", namespace=NAMESPACE)
    assert (undo.tool, undo.within, undo.run, undo.step) == ("publish.undo", "k" * 64, "r", "s0")
    again = undoing(claimed, fence=1, owner="another", namespace=NAMESPACE)
    assert (again.key, again.fingerprint) == (undo.key, undo.fingerprint)
    assert undoing(claimed, fence=2, owner="w", namespace=NAMESPACE).key != undo.key
    assert Keys(Header(format=1, agent="clerk", canon=1)).false(undo) is None


def test_what_a_run_did_may_be_taken_back_after_it_was_closed() -> None:
    order = Order()
    for event in (RunOpened(run="r", at=""), RunClosed(run="r", at="", status="complete")):
        assert order.check(event) is None
    claimed = EffectClaimed(run="r", at="", step="s0", tool="t", key="k", fingerprint="f")
    assert order.check(claimed) == "run 'r' is closed"
    assert order.check(msgspec.structs.replace(claimed, within="k0")) is None
    assert order.check(msgspec.structs.replace(claimed, within="k0", run="q")) is not None
