"""Trust breaks and the cases of other people's meshes that are about verdicts."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from backstop.core.canon import digest
from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind
from backstop.core.recovery import plan
from backstop.core.trust import Badness, Reason, State, World
from backstop.core.trustbreak import Inputs, Producer, Selector, Steps, TrustBreak
from backstop.core.trustgraph import TrustGraph
from backstop.core.trustverdicts import Verdicts
from tests.unit.core.mesh.desk import Desk, open_desk

PAGE = Dep(DepKind.EVIDENCE, "https://prices.example", digest("page 1"))


@pytest.fixture
def desk() -> Desk:
    return open_desk()


def broken(selector: Selector, *, seq: int = 100) -> TrustBreak:
    return TrustBreak(
        id="b1", seq=seq, epoch=1, detector="person", reason="looked wrong", selector=selector
    )


def test_m26_a_person_invalidates_a_step_and_exactly_what_was_made_from_it(desk: Desk) -> None:
    """M26: `invalidate` by hand, with a reason; exact descendants only."""
    desk.breaks.append(broken(Steps(steps=("statistician",))))
    assert desk.at("statistician").reason is Reason.BROKEN
    expected = {"statistician": "I", "skeptic": "R", "orchestrator": "R", "publish": "B"}
    assert desk.states() == {"feed": "V", "history": "V", "scout": "V", **expected}
    assert desk.graph.selected(desk.breaks[0]) == {"statistician"}


def test_a_step_that_was_run_again_after_the_break_is_not_meant_by_it(desk: Desk) -> None:
    desk.breaks.append(broken(Steps(steps=("statistician", "nobody"))))
    desk.recover({}, now=160)
    assert set(desk.states(160).values()) == {"V"}
    assert desk.graph.selected(desk.breaks[0]) == set()


def test_of_several_breaks_the_latest_counts(desk: Desk) -> None:
    selector = Steps(steps=("scout",))
    desk.breaks += [broken(selector, seq=3), broken(selector, seq=4), broken(selector, seq=2)]
    assert desk.at("scout").reason is Reason.BROKEN


def test_bad_bytes_stay_bad_for_whoever_reads_them_later(desk: Desk) -> None:
    """M40: a later step that cites what was removed is refused."""
    desk.step("scout", StepKind.MODEL, ["feed"], {"v": "S"}, gen=1, seq=8, outside=outside(PAGE))
    these, any_bytes = (
        broken(Inputs(kind=PAGE.kind, ref=PAGE.ref, digest=PAGE.digest), seq=9),
        broken(Inputs(kind=PAGE.kind, ref=PAGE.ref), seq=9),
    )
    assert desk.graph.selected(these) == desk.graph.selected(any_bytes) == {"scout"}
    desk.step("scout", StepKind.MODEL, ["feed"], {"v": "S"}, gen=2, seq=10, outside=outside(PAGE))
    assert desk.graph.selected(these) == {"scout"}
    assert desk.graph.selected(any_bytes) == set(), "read again after the break, it is new"
    desk.breaks.append(these)
    assert desk.at("scout").reason is Reason.BROKEN
    desk.breaks[:] = [any_bytes]
    assert desk.at("scout").state is State.VERIFIED


def outside(*more: Dep) -> tuple[Dep, ...]:
    return (*open_desk().graph["feed"].outside, *more)


def test_a_recorder_that_lied_for_a_while_is_not_believed_for_that_while(desk: Desk) -> None:
    desk.breaks.append(broken(Producer(producer="recorder", first=2, last=4)))
    assert desk.graph.selected(desk.breaks[0]) == {"history", "scout", "statistician"}
    states = desk.states()
    assert [states[s] for s in ("feed", "history", "scout", "statistician")] == ["V", "I", "I", "I"]
    assert desk.graph.selected(broken(Producer(producer="other", last=9))) == set()


def test_a_break_names_inputs_by_kind_and_name() -> None:
    selector = Inputs(kind=PAGE.kind, ref=PAGE.ref)
    assert selector.names(PAGE)
    assert not selector.names(Dep(DepKind.TOOL, PAGE.ref, PAGE.digest))
    assert not Inputs(kind=PAGE.kind, ref=PAGE.ref, digest=digest("page 2")).names(PAGE)


def test_m03_a_step_without_inputs_is_not_run_for_that(desk: Desk) -> None:
    """M03: unchanged code and rules, nothing read: VERIFIED."""
    desk.step("constant", StepKind.MODEL, [], {"v": 1})
    assert desk.at("constant").state is State.VERIFIED


def test_m04_code_that_changed_and_answers_the_same_stops_there(desk: Desk) -> None:
    """M04: that step RECOMPUTE, its dependents VERIFIED once it gave the same."""
    parts = [dep for dep in outside() if dep.kind is not DepKind.CODE]
    own = Dep(DepKind.CODE, "scout", digest("c1"))
    desk.pins[DepKind.CODE, "scout"] = digest("c1")
    both = (*parts, own)
    desk.step("scout", StepKind.MODEL, ["feed"], {"v": "S"}, gen=1, outside=both)
    desk.pins[DepKind.CODE, "scout"] = digest("c2")
    assert (desk.states()["scout"], desk.at("scout").culprit) == ("R", "code:scout")
    done = desk.recover({}, now=160)
    assert done.executed == ("scout",)
    assert set(desk.states(160).values()) == {"V"}


def test_m07_a_step_that_read_what_was_replaced_meanwhile_is_found_by_digest(desk: Desk) -> None:
    """M07: B began before A ended; times say nothing, the digest that B read does."""
    read = desk.output("history")
    desk.step("history", StepKind.INPUT, [], {"v": "written meanwhile"}, gen=1, at=105.0, ttl=200)
    late = msgspec.structs.replace(desk.graph["statistician"], gen=1, observed_at=110.0)
    assert read in {dep.digest for dep in late.deps}
    desk.sign(late)
    desk.graph.put(late)
    assert desk.at("statistician").reason is Reason.INPUT_DIGEST


def test_m09_a_rule_reaches_every_shard(desk: Desk) -> None:
    """M09: all shards are judged, not only unsharded steps."""
    for shard in range(3):
        desk.step(f"score#{shard}", StepKind.MODEL, ["feed"], {"v": shard})
    desk.pins[DepKind.POLICY, "publishing"] = digest("p2")
    assert {desk.at(f"score#{shard}").reason for shard in range(3)} == {Reason.POLICY_STALE}


def test_m10_steps_from_before_are_unknown_and_not_invalid(desk: Desk) -> None:
    """M10: a legacy class, counted once; no mass INVALIDATED, and no effect on such ground."""
    desk.step("old", StepKind.MODEL, [], {"v": "old"})
    desk.sign(desk.edit("old", gen=1, output=""))
    desk.step("reader", StepKind.MODEL, ["old"], {"v": "reader"})
    desk.step("pay", StepKind.EFFECT, ["reader"], {"v": "pay"})
    states = {step: desk.at(step).state for step in ("old", "reader", "pay", "scout")}
    assert states["old"] is states["reader"] is State.UNKNOWN
    assert states["pay"] is State.BLOCKED
    assert states["scout"] is State.VERIFIED
    assert desk.at("reader").reason is Reason.INPUT_STATE
    assert plan(desk.verdicts()).unknown == ("old", "reader", "pay")
    assert plan(desk.verdicts()).rerun == ()
    assert desk.at("reader").badness is Badness.UNKNOWN


def test_m19_memories_made_from_a_poisoned_one_carry_it(desk: Desk) -> None:
    """M19: m1 INVALIDATED, m2 RECOMPUTE, the waiting mail BLOCKED, m3 untouched."""
    desk.step("m1", StepKind.TOOL, [], {"v": "poison"})
    desk.step("m2", StepKind.MODEL, ["m1"], {"v": "summary"})
    desk.step("m3", StepKind.TOOL, [], {"v": "else"})
    desk.step("send", StepKind.EFFECT, ["m2"], {"v": "mail"})
    desk.revoked.add(desk.output("m1"))
    states = desk.states()
    assert [states[step] for step in ("m1", "m2", "send", "m3")] == ["I", "R", "B", "V"]


def test_revoked_evidence_is_found_by_whoever_read_it(desk: Desk) -> None:
    desk.step("scout", StepKind.MODEL, ["feed"], {"v": "S"}, gen=1, outside=outside(PAGE))
    desk.revoked.add(PAGE.digest)
    assert desk.at("scout").reason is Reason.REVOKED


def test_m21_a_tool_result_that_no_ledger_saw_is_made_up(desk: Desk) -> None:
    """M21: a result in history whose digest is not in the ledger: no provenance."""
    seen, made_up = (Dep(DepKind.TOOL, "read_file", digest(text)) for text in ("file", "fancy"))
    desk.step("told", StepKind.MODEL, [], {"v": 1}, outside=outside(seen))
    desk.step("dreamt", StepKind.MODEL, [], {"v": 2}, outside=outside(made_up))
    world = replace(desk.world(), witnessed=frozenset({seen.digest}))
    verdicts = Verdicts(desk.graph, world)
    assert verdicts["told"].state is State.VERIFIED
    assert verdicts["dreamt"].reason is Reason.UNPROVEN
    assert verdicts["dreamt"].state is State.INVALIDATED


def test_m24_a_step_that_used_half_an_input_is_run_again_when_the_rest_comes(desk: Desk) -> None:
    """M24: a failed, b ran on what there was; resuming a puts b and its effect in question."""
    half = desk.step("a", StepKind.TOOL, [], {"v": "half"})
    desk.step("b", StepKind.MODEL, ["a"], {"v": "report"})
    desk.step("send", StepKind.EFFECT, ["b"], {"v": "send"})
    desk.step("a", StepKind.TOOL, [], {"v": "whole"}, gen=half.gen + 1)
    assert (desk.states()["b"], desk.states()["send"]) == ("R", "B")


def test_m25_a_broken_output_is_not_served_from_a_cache_for_ever(desk: Desk) -> None:
    """M25: a INVALIDATED, what consumes it waits; mending a is enough."""
    desk.step("a", StepKind.MODEL, [], {})
    desk.step("c", StepKind.EFFECT, ["a"], {"v": "c"})
    assert (desk.states()["a"], desk.states()["c"]) == ("I", "B")
    assert desk.recover({"a": {"v": "mended"}}, now=160).executed == ("a",)
    assert desk.states(160)["a"] == "V"


def test_m31_a_rule_that_hardly_changes_vouches_for_no_input_that_does(desk: Desk) -> None:
    """M31: validity is that of the weakest input."""
    desk.step("list", StepKind.INPUT, [], {"v": "daily"}, ttl=60)
    desk.step("rule", StepKind.JOIN, ["list"], {"v": "rarely changes"}, ttl=10**6)
    assert desk.at("rule", 159).horizon == 160
    assert desk.at("rule", 160).state is State.RECOMPUTE


def test_m44_a_rule_that_cannot_be_read_allows_nothing(desk: Desk) -> None:
    """M44: unreadable policy is BLOCKED, neither a crash nor a yes."""
    del desk.pins[DepKind.POLICY, "publishing"]
    assert {desk.at(step).state for step in desk.graph} == {State.BLOCKED}


def test_m45_only_what_failed_and_what_follows_is_run_and_late_answers_are_fenced() -> None:
    """M45: A-B-C-D, C bad: C and D again; C's late first answer and B's lost bytes count."""
    desk = Desk()
    for step, reads in (("A", []), ("B", ["A"]), ("C", ["B"]), ("D", ["C"])):
        desk.step(step, StepKind.MODEL, reads, {"v": step})
    late = desk.graph["C"]
    desk.breaks.append(broken(Steps(steps=("C",))))
    assert plan(desk.verdicts()).rerun == ("C", "D")
    desk.recover({"C": {"v": "C2"}}, now=160)
    assert not desk.graph.put(msgspec.structs.replace(late, output=digest("late"), seq=99))
    assert set(desk.states(160).values()) == {"V"}
    del desk.blobs[desk.output("B")]
    assert desk.states(160) == {"A": "V", "B": "I", "C": "R", "D": "R"}


def test_a_world_that_allows_nobody_trusts_nothing() -> None:
    graph = TrustGraph()
    graph.put(
        Checkpoint(
            run="r",
            step="s",
            kind=StepKind.INPUT,
            output=digest("x"),
            producer="p",
            observed_at=0.0,
        )
    )
    assert Verdicts(graph, World(now=1.0))["s"].reason is Reason.WRONG_PRODUCER
