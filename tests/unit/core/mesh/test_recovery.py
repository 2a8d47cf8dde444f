"""The reference scenario, plans, receipts, and the chain from a step to its culprit."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core.canon import digest
from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind, Usage
from backstop.core.recovery import Link, plan, receipt, recover, why
from backstop.core.trust import Reason, State
from tests.unit.core.mesh.desk import Desk, open_desk


@pytest.fixture
def desk() -> Desk:
    return open_desk()


def before(desk: Desk) -> dict[str, Checkpoint]:
    return {step: desk.graph[step] for step in desk.graph}


def test_stale_evidence_costs_three_calls_of_four(desk: Desk) -> None:
    recorded = before(desk)
    done = desk.recover({step: {"v": f"new {step}"} for step in desk.graph}, now=301)
    told = receipt(recorded, done)
    assert (told.restart.calls, told.restart.input_tokens) == (4, 1781)
    assert (told.spent.calls, told.spent.input_tokens) == (3, 1358)
    assert (told.avoided.calls, told.avoided.input_tokens) == (1, 423)
    assert round(told.saved, 1) == 23.8
    assert (told.steps_run, told.steps_kept, told.cut_off) == (4, 3, 0)


def test_an_equal_answer_leaves_one_call(desk: Desk) -> None:
    recorded = before(desk)
    told = receipt(recorded, desk.recover({"history": {"v": "new history"}}, now=301))
    assert (told.spent.calls, told.spent.input_tokens) == (1, 402)
    assert round(told.saved, 1) == 77.4
    assert told.cut_off == 2


def test_a_run_without_recorded_usage_saves_nothing() -> None:
    told = receipt({}, recover(Desk().verdicts(), _never, limit=1))
    assert told.saved == 0.0


def _never(step: str, _: object) -> Checkpoint:
    raise AssertionError(f"{step} was run")


def test_the_plan_is_exact(desk: Desk) -> None:
    planned = plan(desk.verdicts(301))
    assert planned.rerun == ("history", "statistician", "skeptic", "orchestrator")
    assert planned.reuse == ("feed", "scout")
    assert planned.frozen == ("publish",)
    assert planned.hold == ("publish",)
    assert planned.unknown == ()


def test_a_recovery_that_was_run_to_its_bound_says_so(desk: Desk) -> None:
    done = desk.recover({step: {"v": f"new {step}"} for step in desk.graph}, now=301, limit=2)
    assert done.executed == ("history", "statistician")
    assert done.stopped == "2 steps were run, and skeptic is still to be run"


@pytest.mark.parametrize("changes", [{"gen": 0}, {"step": "scout", "gen": 1}])
def test_an_answer_that_is_no_later_attempt_ends_the_recovery(
    desk: Desk, changes: dict[str, object]
) -> None:
    def rerun(step: str, _: object) -> Checkpoint:
        return msgspec.structs.replace(desk.graph[step], **changes)

    done = recover(desk.verdicts(301), rerun, limit=9)
    assert done.executed == ()
    assert done.stopped == "running history again gave no later attempt at it"


def test_what_a_step_cost_is_what_it_cost_now(desk: Desk) -> None:
    recorded = before(desk)

    def rerun(step: str, _: object) -> Checkpoint:
        made = msgspec.structs.replace(
            desk.graph[step], gen=1, observed_at=301.0, usage=Usage(calls=2, output_tokens=7)
        )
        desk.sign(made)
        return made

    told = receipt(recorded, recover(desk.verdicts(301), rerun, limit=9))
    assert (told.spent.calls, told.spent.output_tokens) == (2, 7)
    assert told.steps_run == 1


def test_m06_the_chain_names_each_step_up_to_the_culprit(desk: Desk) -> None:
    """M06: why is a step run again? Which digest, old and new, from where."""
    read = desk.output("history")
    desk.step("history", StepKind.INPUT, [], {"v": "newer"}, gen=1, ttl=200)
    assert why(desk.verdicts(), "orchestrator") == (
        Link(step="orchestrator", state=State.RECOMPUTE, reason=Reason.INPUT_STATE),
        Link(
            step="statistician",
            state=State.RECOMPUTE,
            reason=Reason.INPUT_DIGEST,
            read=read,
            now=desk.output("history"),
        ),
    )


def test_m06_the_chain_of_a_changed_model_shows_both(desk: Desk) -> None:
    desk.pins[DepKind.MODEL, "gemini"] = digest("m2")
    (link,) = why(desk.verdicts(), "feed")
    assert (link.reason, link.read, link.now) == (Reason.PIN, digest("m1"), digest("m2"))


def test_m06_the_chain_of_a_changed_rule_shows_both(desk: Desk) -> None:
    desk.pins[DepKind.POLICY, "publishing"] = digest("p2")
    (link,) = why(desk.verdicts(), "feed")
    assert (link.read, link.now) == (digest("p1"), digest("p2"))


def test_m06_a_verified_step_has_no_chain(desk: Desk) -> None:
    assert why(desk.verdicts(), "scout") == (
        Link(step="scout", state=State.VERIFIED, reason=Reason.OK),
    )


def test_the_id_of_a_record_does_not_depend_on_the_order_of_its_inputs(desk: Desk) -> None:
    made = desk.graph["orchestrator"]
    turned = msgspec.structs.replace(made, deps=tuple(reversed(made.deps)))
    assert turned.id == made.id
    fewer = msgspec.structs.replace(made, deps=made.deps[1:])
    assert fewer.id != made.id, "M02: what a step reads is part of what it is"


def test_the_graph_says_what_it_holds(desk: Desk) -> None:
    assert len(desk.graph) == 7
    assert "scout" in desk.graph
    assert "ghost" not in desk.graph
    assert 7 not in desk.graph
    desk.step("late", StepKind.MODEL, ["ghost"], {"v": 1})
    assert "ghost" not in desk.graph
    with pytest.raises(KeyError, match="ghost"):
        desk.graph["ghost"]
    verdicts = desk.verdicts()
    with pytest.raises(KeyError, match="ghost"):
        verdicts["ghost"]
    assert len(verdicts) == 8
    assert verdicts.update({"ghost"}) == set()


def test_dependencies_have_an_order() -> None:
    assert sorted(
        [Dep(DepKind.TOOL, "b", ""), Dep(DepKind.TOOL, "a", ""), Dep(DepKind.CODE, "z", "")]
    ) == [Dep(DepKind.CODE, "z", ""), Dep(DepKind.TOOL, "a", ""), Dep(DepKind.TOOL, "b", "")]
