"""What finds by itself that trust broke, and the anchors that it is held to."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core.anchors import Anchors, Rule, pins_of, world_of
from backstop.core.canon import digest
from backstop.core.checkpoint import Dep, DepKind, StepKind
from backstop.core.detectors import Finding, detect
from backstop.core.trust import State
from backstop.core.trustbreak import Steps
from backstop.core.trustverdicts import Verdicts
from tests.unit.core.mesh.desk import Desk, open_desk


@pytest.fixture
def desk() -> Desk:
    return open_desk()


def found(desk: Desk, now: float = 150.0) -> dict[str, tuple[str, ...]]:
    return {one.detector: one.steps for one in detect(desk.verdicts(now))}


def test_where_all_holds_nothing_is_found(desk: Desk) -> None:
    assert found(desk) == {}


def test_evidence_that_is_too_old(desk: Desk) -> None:
    assert found(desk, 301) == {"evidence age": ("history",)}


def test_a_rule_that_changed_is_found_where_it_judged(desk: Desk) -> None:
    desk.pins[DepKind.POLICY, "publishing"] = digest("p2")
    assert found(desk) == {"policy rule": tuple(desk.graph)}


def test_a_tool_that_is_declared_otherwise_and_not_any_other_definition(desk: Desk) -> None:
    tool = Dep(DepKind.TOOL, "quote", digest("t1"))
    made = desk.graph["scout"]
    desk.edit("scout", deps=(*made.deps, tool), gen=1)
    desk.sign(desk.graph["scout"])
    desk.pins[DepKind.TOOL, "quote"] = digest("t1")
    assert found(desk) == {}
    desk.pins[DepKind.MODEL, "gemini"] = digest("m2")
    assert found(desk) == {}
    assert desk.at("feed").state is State.RECOMPUTE
    desk.pins[DepKind.MODEL, "gemini"] = digest("m1")
    desk.pins[DepKind.TOOL, "quote"] = digest("t2")
    assert found(desk) == {"tool schema": ("scout",)}


def test_an_output_without_its_form(desk: Desk) -> None:
    desk.step("scout", StepKind.MODEL, ["feed"], {"no": "S"}, gen=1, seq=9)
    assert found(desk) == {"output schema": ("scout",)}


def test_what_is_revoked_by_its_bytes_or_by_who_vouches_for_it(desk: Desk) -> None:
    desk.revoked.add(desk.output("history"))
    assert found(desk) == {"revoked digest": ("history",)}
    desk.revoked_producers.add("recorder")
    assert found(desk) == {"revoked producer": tuple(desk.graph)}


def test_an_input_that_changed_while_it_was_read(desk: Desk) -> None:
    made = desk.graph["scout"]
    desk.edit("scout", deps=(*made.deps, Dep(DepKind.UPSTREAM, "feed", digest("other"))), gen=1)
    assert found(desk) == {"unsteady read": ("scout",)}


def test_a_finding_is_the_same_break_each_time_and_another_for_a_later_attempt(desk: Desk) -> None:
    (first,) = detect(desk.verdicts(301))
    broken = first.broken("r")
    assert broken == first.broken("r")
    assert broken.selector == Steps(steps=("history",))
    assert broken.id != first.broken("other").id
    desk.breaks.append(msgspec.structs.replace(broken, seq=100))
    assert found(desk, 301) == {}
    desk.step("history", StepKind.INPUT, [], {"v": "history"}, gen=1, at=301, ttl=200, seq=101)
    assert found(desk, 302) == {}
    (again,) = detect(desk.verdicts(600))
    assert isinstance(again, Finding)
    assert again.broken("r").id != broken.id


def test_a_looser_rule_holds_for_new_runs_only(desk: Desk) -> None:
    records = [desk.graph[step] for step in desk.graph]
    old, new = digest("p1"), digest("p2")
    rule = (DepKind.POLICY, "publishing")
    looser = Anchors(rules={"publishing": Rule(digest=new, loosens=frozenset({old}))})
    assert pins_of(looser, records)[rule] == old
    assert pins_of(looser, [])[rule] == new
    stricter = Anchors(rules={"publishing": Rule(digest=new)})
    assert pins_of(stricter, records)[rule] == new
    other = msgspec.structs.replace(records[0], deps=(Dep(*rule, new),))
    assert pins_of(looser, [*records, other])[rule] == new


def test_a_world_is_what_the_anchors_say(desk: Desk) -> None:
    anchors = Anchors(
        producers=frozenset({"recorder"}),
        pins={key: pin for key, pin in desk.pins.items() if key[0] is not DepKind.POLICY},
        rules={"publishing": Rule(digest=digest("p1"))},
    )
    records = [desk.graph[step] for step in desk.graph]
    world = world_of(anchors, records, now=150.0, high_water=0.0, breaks=())
    verdicts = Verdicts(desk.graph, world)
    assert {verdict.state for _, verdict in verdicts.items()} == {State.VERIFIED}
    none = world_of(Anchors(), records, now=150.0, high_water=0.0, breaks=())
    assert State.VERIFIED not in {v.state for _, v in Verdicts(desk.graph, none).items()}
