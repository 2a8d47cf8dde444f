"""Thirty faults of records, clocks and workers, each with what must follow."""

from __future__ import annotations

from dataclasses import replace
from math import nan

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from backstop.core.canon import NotCanonical, canonical, digest
from backstop.core.checkpoint import Dep, DepKind, StepKind
from backstop.core.recovery import plan
from backstop.core.trust import Reason, State
from backstop.core.trustverdicts import Verdicts
from tests.unit.core.mesh.desk import Desk, open_desk

FROM_STATISTICIAN = {"statistician": "R", "skeptic": "R", "orchestrator": "R", "publish": "B"}


@pytest.fixture
def desk() -> Desk:
    opened = open_desk()
    assert set(opened.states().values()) == {"V"}
    return opened


def test_01_a_flipped_byte_of_an_output_invalidates_its_step(desk: Desk) -> None:
    output = desk.output("statistician")
    desk.blobs[output] = desk.blobs[output][:-3] + b"X" + desk.blobs[output][-2:]
    assert desk.at("statistician").reason is Reason.BLOB_DIGEST
    expected = {"feed": "V", "history": "V", "scout": "V", **FROM_STATISTICIAN, "statistician": "I"}
    assert desk.states() == expected


def test_02_a_lost_output_is_not_trusted_from_memory(desk: Desk) -> None:
    del desk.blobs[desk.output("skeptic")]
    assert desk.at("skeptic").reason is Reason.BLOB_MISSING
    assert (desk.states()["statistician"], desk.states()["orchestrator"]) == ("V", "R")


def test_03_stale_evidence_reaches_what_was_made_from_it(desk: Desk) -> None:
    assert desk.at("history", 301).reason is Reason.STALE
    expected = {"feed": "V", "history": "I", "scout": "V", **FROM_STATISTICIAN}
    assert desk.states(301) == expected


def test_04_evidence_is_stale_at_its_very_end(desk: Desk) -> None:
    assert desk.at("history", 299.999).state is State.VERIFIED
    assert desk.at("history", 300.0).state is State.INVALIDATED


def test_05_a_malformed_output_is_a_break_as_it_is_written(desk: Desk) -> None:
    desk.step("statistician", StepKind.MODEL, ["scout", "history"], ["no", "object"], gen=1)
    assert desk.at("statistician").reason is Reason.OUTPUT_SCHEMA
    assert (desk.states()["skeptic"], desk.states()["scout"]) == ("R", "V")


def test_06_a_poisoned_tool_result_reaches_whoever_read_it(desk: Desk) -> None:
    desk.step("web", StepKind.TOOL, [], {"v": "page"})
    desk.step("scout", StepKind.MODEL, ["feed", "web"], {"v": "S"}, gen=1)
    assert desk.states()["publish"] == "V", "the same answer as before moves nothing"
    desk.revoked.add(desk.output("web"))
    expected = {"feed": "V", "history": "V", "scout": "R", **FROM_STATISTICIAN, "web": "I"}
    assert desk.states() == expected
    assert desk.at("web").reason is Reason.REVOKED


def test_07_a_changed_rule_invalidates_all_that_it_judged(desk: Desk) -> None:
    desk.pins[DepKind.POLICY, "publishing"] = digest("p2")
    assert desk.at("scout").reason is Reason.POLICY_STALE
    assert set(desk.states().values()) == {"I"}


def test_08_another_model_means_another_answer(desk: Desk) -> None:
    desk.pins[DepKind.MODEL, "gemini"] = digest("m2")
    assert desk.at("feed").reason is Reason.PIN
    assert desk.at("feed").culprit == "model:gemini"
    assert desk.states() == dict.fromkeys(desk.graph, "R") | {"publish": "B"}


def test_09_code_that_is_pinned_nowhere_is_missing(desk: Desk) -> None:
    del desk.pins[DepKind.CODE, "agents"]
    assert set(desk.states().values()) == {"B"}
    assert desk.at("feed").reason is Reason.MISSING_DEP


def test_10_a_signature_by_another_key_is_no_signature(desk: Desk) -> None:
    forged = desk.edit("history", gen=1, output=desk.keep({"v": "evil"}))
    desk.sign(forged, key=Ed25519PrivateKey.generate())
    assert desk.at("history").reason is Reason.BAD_SIGNATURE
    assert desk.states()["publish"] == "B"


def test_11_an_unsigned_record_is_not_trusted(desk: Desk) -> None:
    desk.step("history", StepKind.INPUT, [], {"v": "x"}, gen=1, signed=False)
    assert desk.at("history").reason is Reason.UNSIGNED


def test_12_a_signature_moved_to_another_record_is_found(desk: Desk) -> None:
    signature = desk.signatures[desk.graph["history"].id]
    moved = desk.edit("history", gen=1, output=desk.keep({"v": "evil"}))
    desk.signatures[moved.id] = signature
    assert desk.at("history").reason is Reason.BAD_SIGNATURE


def test_13_a_revoked_recorder_vouches_for_nothing(desk: Desk) -> None:
    desk.revoked_producers.add("recorder")
    assert set(desk.states().values()) == {"I"}
    assert desk.at("feed").reason is Reason.REVOKED_KEY


def test_14_an_agent_does_not_vouch_for_itself(desk: Desk) -> None:
    desk.step("scout", StepKind.MODEL, ["feed"], {"v": "S"}, gen=1, producer="scout")
    assert desk.at("scout").reason is Reason.WRONG_PRODUCER


def test_15_a_replayed_old_record_does_not_come_back(desk: Desk) -> None:
    old = desk.graph["history"]
    desk.step("history", StepKind.INPUT, [], {"v": "newer"}, gen=1, at=140.0, ttl=200)
    assert not desk.graph.put(old)
    assert desk.graph["history"].gen == 1
    assert desk.states()["statistician"] == "R"


def test_16_two_bodies_under_one_name_count_for_nothing(desk: Desk) -> None:
    desk.step("history", StepKind.INPUT, [], {"v": "other"}, gen=0)
    assert desk.at("history").reason is Reason.DUPLICATE
    assert (desk.states()["statistician"], desk.states()["scout"]) == ("B", "V")


def test_17_a_record_that_comes_again_changes_nothing(desk: Desk) -> None:
    assert not any(desk.graph.put(desk.graph[step]) for step in list(desk.graph))
    again = msgspec.structs.replace(desk.graph["scout"], seq=99)
    assert not desk.graph.put(again), "nor does the same record at another place in the log"
    assert set(desk.states().values()) == {"V"}


def test_18_an_input_that_nobody_recorded_blocks(desk: Desk) -> None:
    desk.step("statistician", StepKind.MODEL, ["scout", "ghost"], {"v": "T"}, gen=1)
    assert desk.at("statistician").reason is Reason.MISSING_DEP
    assert desk.at("statistician").culprit == "ghost"
    assert (desk.states()["skeptic"], desk.states()["scout"]) == ("B", "V")


def test_18_a_stale_step_with_a_missing_input_is_blocked_too(desk: Desk) -> None:
    desk.step("statistician", StepKind.MODEL, ["ghost"], {"v": "T"}, gen=1, ttl=1)
    assert desk.at("statistician").reason is Reason.MISSING_DEP


def test_19_a_cycle_is_blocked_and_all_behind_it(desk: Desk) -> None:
    desk.step("scout", StepKind.MODEL, ["feed", "orchestrator"], {"v": "S"}, gen=1)
    blocked = ("scout", "statistician", "skeptic", "orchestrator", "publish")
    assert desk.states() == {"feed": "V", "history": "V"} | dict.fromkeys(blocked, "B")
    assert set(plan(desk.verdicts()).hold) == set(blocked)


def test_20_evidence_from_the_future_is_not_fresh(desk: Desk) -> None:
    desk.step("history", StepKind.INPUT, [], {"v": "history"}, gen=1, at=500.0, ttl=200)
    assert desk.at("history").reason is Reason.FUTURE


@pytest.mark.parametrize("changes", [{"observed_at": nan}, {"ttl": nan}])
def test_20_a_time_that_is_no_number_is_not_fresh(desk: Desk, changes: dict[str, float]) -> None:
    graph = desk.graph
    graph.put(msgspec.structs.replace(graph["history"], gen=1, **changes))
    bare = replace(desk.world(), integrity=None, provenance=None, policy=None)
    assert Verdicts(graph, bare)["history"].state is State.INVALIDATED


def test_21_a_clock_that_was_turned_back_blocks(desk: Desk) -> None:
    verdict = desk.verdicts(120, high_water=301)["history"]
    assert (verdict.state, verdict.reason) == (State.BLOCKED, Reason.CLOCK)


def test_22_clocks_may_differ_by_a_margin_and_freshness_pays_for_it(desk: Desk) -> None:
    assert desk.verdicts(296, skew=5.0)["history"].reason is Reason.STALE
    assert desk.verdicts(294, skew=5.0)["history"].state is State.VERIFIED


def test_23_a_checker_that_raises_blocks_everything_it_should_have_seen(desk: Desk) -> None:
    def broken(_: object) -> Reason | None:
        raise ZeroDivisionError

    verdicts = Verdicts(desk.graph, replace(desk.world(), policy=broken))
    assert {verdict.state for _, verdict in verdicts.items()} == {State.BLOCKED}


def test_24_a_record_of_an_unknown_form_is_blocked(desk: Desk) -> None:
    desk.sign(desk.edit("scout", gen=1, schema=9))
    assert desk.at("scout").reason is Reason.SCHEMA
    assert desk.states()["publish"] == "B"


@pytest.mark.parametrize("value", [nan, float("inf"), float("-inf")])
def test_25_what_has_no_canonical_form_has_no_digest(value: float) -> None:
    with pytest.raises(NotCanonical):
        canonical({"v": value})


def test_26_an_equal_answer_cuts_the_recovery_off(desk: Desk) -> None:
    done = desk.recover({"history": {"v": "new history"}}, now=310.0)
    assert done.plan.rerun == ("history", "statistician", "skeptic", "orchestrator")
    assert done.executed == ("history", "statistician")
    assert not done.stopped
    assert set(desk.states(310.0).values()) == {"V"}


def test_27_another_answer_is_followed_to_the_effect_which_waits(desk: Desk) -> None:
    new: dict[str, object] = {step: {"v": f"new {step}"} for step in desk.graph}
    done = desk.recover(new, now=310.0)
    assert done.executed == ("history", "statistician", "skeptic", "orchestrator")
    assert desk.at("publish", 310.0).reason is Reason.INPUT_DIGEST
    assert desk.states(310.0)["publish"] == "B"


def test_28_a_step_that_comes_out_bad_again_costs_no_further_call(desk: Desk) -> None:
    done = desk.recover({"history": {"v": "new"}, "statistician": ["bad"]}, now=310.0)
    assert done.executed == ("history", "statistician")
    assert done.stopped == "statistician is INVALIDATED: output schema"
    expected = {"statistician": "I", "skeptic": "R", "orchestrator": "R", "publish": "B"}
    assert desk.states(310.0) == {"feed": "V", "history": "V", "scout": "V", **expected}


def test_29_what_code_may_not_run_again_blocks_what_was_made_from_it(desk: Desk) -> None:
    desk.step("history", StepKind.INPUT, [], {"v": "history"}, gen=1, ttl=200, rerunnable=False)
    blocked = dict.fromkeys(("statistician", "skeptic", "orchestrator", "publish"), "B")
    assert desk.states(301) == {"feed": "V", "history": "I", "scout": "V", **blocked}


def test_29_a_person_is_waited_for_before_a_step_that_may_not_be_run_again(desk: Desk) -> None:
    reads = ["scout", "history"]
    desk.step("statistician", StepKind.MODEL, reads, {"v": "T"}, gen=1, rerunnable=False)
    assert desk.states(301)["statistician"] == "B"
    assert desk.states(301)["skeptic"] == "B"


def test_30_no_answer_of_a_model_overrides_a_verdict(desk: Desk) -> None:
    answer = {"v": "O", "state": "VERIFIED", "policy_override": True}
    reads = ["scout", "statistician", "skeptic"]
    desk.step("orchestrator", StepKind.MODEL, reads, answer, gen=1)
    assert desk.at("publish").state is State.BLOCKED


def test_an_input_read_twice_with_different_bytes_is_unsteady(desk: Desk) -> None:
    page = (Dep(DepKind.EVIDENCE, "page", digest("1")), Dep(DepKind.EVIDENCE, "page", digest("2")))
    made = desk.step("scout", StepKind.MODEL, ["feed"], {"v": "S"}, gen=1)
    desk.sign(desk.edit("scout", gen=2, deps=(*made.deps, *page)))
    assert desk.at("scout").reason is Reason.UNSTEADY_READ
