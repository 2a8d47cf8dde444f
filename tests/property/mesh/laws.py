"""The laws of trust, as functions of a core: the shipped one, or one with a fault planted in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import networkx as nx
from hypothesis import strategies as st

from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind
from backstop.core.trust import Reason, State, Verdict, World
from backstop.core.trustgraph import TrustGraph
from tests.property.mesh.fleet import (
    NOW,
    RULE,
    Fleet,
    fleets,
    name,
    number,
    read,
    record,
    records,
    world,
)
from tests.property.mesh.planting import Core
from tests.property.mesh.ways import (
    a_check_that_finds_nothing_changes_nothing,
    odds,
    the_order_of_reading_is_none,
)

PLENTY: Final = 100


@dataclass(frozen=True)
class Law:
    """Something that holds for whatever `drawn` draws; `check` raises where it does not."""

    check: Callable[..., None]
    drawn: tuple[st.SearchStrategy[object], ...]


def graph_of(core: Core, told: Sequence[Checkpoint]) -> TrustGraph:
    graph = core.TrustGraph()
    for one in told:
        graph.put(one)
    found: TrustGraph = graph
    return found


def judged(core: Core, graph: TrustGraph, seen: World) -> dict[str, Verdict]:
    return dict(core.Verdicts(graph, seen).items())


def verified(verdicts: Mapping[str, Verdict]) -> set[str]:
    return {step for step, verdict in verdicts.items() if verdict.state == State.VERIFIED}


def faulty(steps: set[int]) -> World:
    """A world in which the outputs of these steps are not what was written."""
    bad = {name(step) for step in steps}
    return world(integrity=lambda one: Reason.BLOB_DIGEST if one.step in bad else None)


def edges(fleet: Fleet) -> nx.DiGraph[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(fleet)))
    graph.add_edges_from((o, step) for step in range(len(fleet)) for o in fleet.reads[step])
    return graph


def selective_recovery_is_a_restart(core: Core, fleet: Fleet, news: Mapping[int, int]) -> None:
    """Running again only what is planned gives what a restart gives, and no step more."""
    graph = graph_of(core, records(fleet))
    inputs = {step: news.get(step, value) for step, value in fleet.inputs.items()}
    answers = fleet.restart(fleet.inputs)
    for step, value in inputs.items():
        if value != fleet.inputs[step]:
            answers[step] = value
            graph.put(record(fleet, step, answers, gen=1))

    def rerun(step: str, given: Mapping[str, str]) -> Checkpoint:
        at = number(step)
        assert given == {name(o): read(answers[o]) for o in fleet.reads[at]}, "handed old inputs"
        known = graph[step]
        assert any(given[dep.ref] != dep.digest for dep in known.upstream), "run for nothing"
        answers[at] = fleet.value(at, inputs, answers)
        return record(fleet, at, answers, gen=known.gen + 1)

    verdicts = core.Verdicts(graph, world())
    done = core.recover(verdicts, rerun, limit=PLENTY)
    wanted = fleet.restart(inputs)
    assert not done.stopped
    assert verified(judged(core, graph, world())) == {name(step) for step in range(len(fleet))}
    assert {step: graph[step].output for step in graph} == {
        name(step): read(value) for step, value in wanted.items()
    }


def the_blast_radius_is_exact(core: Core, fleet: Fleet, bad: set[int]) -> None:
    """What is not trusted is the faulty steps and what was made from them, and nothing else."""
    bad = {step for step in bad if step < len(fleet)}
    graph = graph_of(core, records(fleet))
    verdicts = judged(core, graph, faulty(bad))
    tree = edges(fleet)
    radius = bad.union(*(nx.descendants(tree, step) for step in bad))
    assert {number(s) for s, one in verdicts.items() if one.badness} == radius
    assert {number(s) for s in graph.blast(name(step) for step in bad)} == radius
    for step in range(len(fleet)):
        verdict = verdicts[name(step)]
        assert (verdict.state == State.INVALIDATED) == (step in bad)
        assert (verdict.state == State.RECOMPUTE) == (step in radius - bad)
        assert verdict.culprit is None or number(verdict.culprit) in bad


def the_blast_radius_follows_what_is_current(core: Core, fleet: Fleet, at: int) -> None:
    """A later attempt that reads nothing is not reached by what the attempt before read."""
    at %= len(fleet)
    graph = graph_of(core, records(fleet))
    graph.put(msgspec.structs.replace(graph[name(at)], gen=1, deps=(RULE,)))
    tree = edges(fleet)
    tree.remove_edges_from([(other, at) for other in fleet.reads[at]])
    for step in range(len(fleet)):
        radius = {name(step), *map(name, nx.descendants(tree, step))}
        assert graph.blast({name(step)}) == radius


def nothing_is_run_behind_a_bad_step(core: Core, fleet: Fleet, bad: int, again: int) -> None:
    """A step that comes out bad again stops what is made from it, and is not run a second time."""
    bad, again = bad % len(fleet), again % len(fleet)
    answers = fleet.restart(fleet.inputs)
    graph = graph_of(core, records(fleet))
    wrong = {name(bad): (0,), name(again): (0, 1)}
    ran: list[int] = []

    def rerun(step: str, _: Mapping[str, str]) -> Checkpoint:
        ran.append(number(step))
        return record(fleet, number(step), answers, gen=graph[step].gen + 1)

    seen = world(
        integrity=lambda one: Reason.BLOB_DIGEST if one.gen in wrong.get(one.step, ()) else None
    )
    verdicts = core.Verdicts(graph, seen)
    done = core.recover(verdicts, rerun, limit=PLENTY)
    tree = edges(fleet)
    behind = nx.descendants(tree, again)
    assert len(ran) == len(set(ran))
    assert not behind & set(ran)
    assert done.stopped
    assert verdicts[name(again)].state == State.INVALIDATED


def an_update_is_judging_from_scratch(
    core: Core, fleet: Fleet, edits: Sequence[tuple[int, int, float | None]]
) -> None:
    """After each new record, what `update` leaves and names is what scratch says."""
    graph = graph_of(core, records(fleet))
    verdicts = core.Verdicts(graph, world())
    for step, value, ttl in edits:
        old = graph[name(step % len(fleet))]
        before = dict(verdicts.items())
        graph.put(msgspec.structs.replace(old, gen=old.gen + 1, output=read(value), ttl=ttl))
        changed = verdicts.update({old.step})
        after = judged(core, graph, world())
        assert dict(verdicts.items()) == after
        assert changed == {s for s, one in after.items() if one != before[s]}


def growth_is_judging_from_scratch(core: Core, fleet: Fleet, places: Sequence[int]) -> None:
    """Steps that come one by one, in any order, with an update after each."""
    graph = core.TrustGraph()
    verdicts = core.Verdicts(graph, world())
    for one in _shuffled(records(fleet), places):
        graph.put(one)
        verdicts.update({one.step})
        # Steps before whose inputs they come are judged anew as those come.
        assert dict(verdicts.items()) == judged(core, graph, world())


def the_order_of_arrival_is_none(
    core: Core, fleet: Fleet, places: Sequence[int], twice: int
) -> None:
    """Old attempts, repeats and two bodies of one name: whatever comes first, one outcome."""
    answers = fleet.restart(fleet.inputs)
    told = []
    for step in range(len(fleet)):
        told.append(record(fleet, step, answers, gen=1))
        told.append(record(fleet, step, answers, gen=0, answer=("old", step)))
        told.append(record(fleet, step, answers, gen=1))
    twin = twice % len(fleet)
    told.append(record(fleet, twin, answers, gen=1, answer=("other", twin)))
    graph = graph_of(core, told)
    shuffled = graph_of(core, _shuffled(told, places))
    verdicts = judged(core, graph, world())
    assert judged(core, shuffled, world()) == verdicts
    assert {step: shuffled[step] for step in shuffled} == {step: graph[step] for step in graph}
    assert verdicts[name(twin)].state == State.BLOCKED
    assert verdicts[name(twin)].reason == Reason.DUPLICATE
    assert all(graph[step].gen == 1 for step in graph)
    graph.put(msgspec.structs.replace(graph[name(twin)], gen=2, output=read(answers[twin])))
    assert verified(judged(core, graph, world())) == set(graph), "a later attempt ends a conflict"


Hostile = tuple[str, int, int]


def a_hostile_store_adds_no_trust(core: Core, fleet: Fleet, acts: Sequence[Hostile]) -> None:
    """Whatever a store drops, repeats, forges, swaps or replays: nothing more is VERIFIED."""
    answers = fleet.restart(fleet.inputs)
    honest = [record(fleet, step, answers, gen=1) for step in range(len(fleet))]
    old = [record(fleet, s, answers, gen=0, answer=("old", s)) for s in range(len(fleet))]
    signed = {one.id for one in (*honest, *old)}
    seen = world(provenance=lambda one: None if one.id in signed else Reason.BAD_SIGNATURE)
    whole = graph_of(core, honest)
    trusted = {(s, whole[s].output) for s in verified(judged(core, whole, seen))}
    told = list(honest)
    for act, first, second in acts:
        _tamper(told, old, act, first, second)
    graph = graph_of(core, told)
    got = {
        # An old record may be all that a store still has: that is a rollback, the log's to find.
        (s, graph[s].output)
        for s in verified(judged(core, graph, seen))
        if graph[s].gen >= 1
    }
    assert got <= trusted


def _tamper(
    told: list[Checkpoint], old: Sequence[Checkpoint], act: str, first: int, second: int
) -> None:
    if act == "replay":
        told.append(old[first % len(old)])
    if not told:
        return
    at, other = first % len(told), second % len(told)
    one = told[at]
    match act:
        case "drop":
            del told[at]
        case "repeat":
            told.append(one)
        case "forge":
            forged = read(("forged", second))
            told.append(msgspec.structs.replace(one, output=forged, gen=one.gen + second % 2))
        case "swap":
            told[at], told[other] = told[other], told[at]
        case "cut":
            told[at] = msgspec.structs.replace(one, deps=(RULE,))
        case "self":
            itself = Dep(DepKind.UPSTREAM, one.step, one.output)
            told[at] = msgspec.structs.replace(one, deps=(*one.deps, itself))
        case _:
            pass


def a_cycle_does_not_vouch_for_itself(core: Core, fleet: Fleet, ends: tuple[int, int]) -> None:
    """What stands on a cycle, or behind one, is not VERIFIED; all else is."""
    first, last = sorted(end % len(fleet) for end in ends)
    answers = fleet.restart(fleet.inputs)
    graph = graph_of(core, records(fleet))
    back = Dep(DepKind.UPSTREAM, name(last), read(answers[last]))
    closed = graph[name(first)]
    graph.put(msgspec.structs.replace(closed, gen=1, deps=(*closed.deps, back)))
    tree = edges(fleet)
    tree.add_edge(last, first)
    looped = {s for part in nx.strongly_connected_components(tree) if len(part) > 1 for s in part}
    looped |= {first} if first == last else set()
    held = looped.union(*(nx.descendants(tree, step) for step in looped))
    verdicts = judged(core, graph, world())
    assert {number(step) for step in verified(verdicts)} == set(range(len(fleet))) - held


def a_cycle_that_opens_is_forgotten(core: Core, fleet: Fleet, ends: tuple[int, int]) -> None:
    """A later attempt that reads no longer from behind itself is judged like any other."""
    first, last = sorted(end % len(fleet) for end in ends)
    answers = fleet.restart(fleet.inputs)
    graph = graph_of(core, records(fleet))
    verdicts = core.Verdicts(graph, world())
    closed = graph[name(first)]
    back = Dep(DepKind.UPSTREAM, name(last), read(answers[last]))
    for gen, deps in ((1, (*closed.deps, back)), (2, closed.deps)):
        graph.put(msgspec.structs.replace(closed, gen=gen, deps=deps))
        verdicts.update({closed.step})
        assert dict(verdicts.items()) == judged(core, graph, world())
    assert verified(judged(core, graph, world())) == {name(step) for step in range(len(fleet))}


def time_heals_nothing(
    core: Core, fleet: Fleet, ttls: Sequence[float | None], times: tuple[float, float], skew: float
) -> None:
    """A horizon says exactly until when; a clock that is turned back brings nothing back."""
    early, late = sorted(times)
    lasting = dict(enumerate(ttls[: len(fleet)]))
    graph = graph_of(core, records(fleet, ttls=lasting))
    before = judged(core, graph, world(early, skew=skew))
    after = judged(core, graph, world(late, skew=skew))
    for step, verdict in before.items():
        fresh = verdict.state == State.VERIFIED
        if fresh:
            assert early + skew < verdict.horizon
        assert (after[step].state == State.VERIFIED) == (fresh and late + skew < verdict.horizon)
    turned = judged(core, graph, world(early, skew=skew, high_water=late))
    assert verified(turned) <= verified(after)


def what_is_missing_is_not_trusted(core: Core, fleet: Fleet, gone: int) -> None:
    """Behind a record that is not there everything is BLOCKED."""
    gone %= len(fleet)
    told = [one for one in records(fleet) if one.step != name(gone)]
    verdicts = judged(core, graph_of(core, told), world())
    behind = {name(step) for step in nx.descendants(edges(fleet), gone)}
    assert {step for step, one in verdicts.items() if one.state == State.BLOCKED} == behind
    assert verified(verdicts) == verdicts.keys() - behind


def a_rule_that_changed_judges_anew(core: Core, fleet: Fleet) -> None:
    """Everything that was judged by the old rule is INVALIDATED, inputs included."""
    verdicts = judged(core, graph_of(core, records(fleet)), world(rule="rule-2"))
    assert {one.reason for one in verdicts.values()} == {Reason.POLICY_STALE}
    assert {one.state for one in verdicts.values()} == {State.INVALIDATED}


def a_checker_that_raises_blocks(core: Core, fleet: Fleet, at: int, which: str) -> None:
    """Nothing is trusted because nobody could look."""
    broken = name(at % len(fleet))

    def check(one: Checkpoint) -> Reason | None:
        if one.step == broken:
            raise RuntimeError("the checker is broken")
        return None

    seen = world(
        integrity=check if which == "integrity" else None,
        provenance=check if which == "provenance" else None,
        policy=check if which == "policy" else None,
    )
    verdicts = judged(core, graph_of(core, records(fleet)), seen)
    assert verdicts[broken].state == State.BLOCKED
    assert verdicts[broken].reason == Reason.CHECK_ERROR


def an_effect_needs_clean_inputs(core: Core, fleet: Fleet, bad: int) -> None:
    """An effect is VERIFIED if what it was made from is, else BLOCKED; it is never planned."""
    answers = fleet.restart(fleet.inputs)
    last = len(fleet) - 1
    graph = graph_of(core, records(fleet))
    deps = (Dep(DepKind.UPSTREAM, name(last), read(answers[last])), RULE)
    effect = msgspec.structs.replace(
        graph[name(last)], step="pay", kind=StepKind.EFFECT, deps=deps, output=read("pay")
    )
    graph.put(effect)
    verdicts = core.Verdicts(graph, faulty({bad % len(fleet)}))
    clean = verdicts[name(last)].state == State.VERIFIED
    assert verdicts["pay"].state == (State.VERIFIED if clean else State.BLOCKED)
    planned = core.plan(verdicts)
    assert "pay" not in planned.rerun
    assert ("pay" in planned.frozen) == (not clean)


def _shuffled(told: Sequence[Checkpoint], places: Sequence[int]) -> list[Checkpoint]:
    first = [told[place] for place in places if place < len(told)]
    return first + [one for place, one in enumerate(told) if place not in set(places)]


_steps: Final = st.integers(0, 8)
_ends: Final = st.tuples(_steps, _steps)
_time: Final = st.floats(0, 60)
_acts: Final = st.sampled_from(("drop", "repeat", "forge", "swap", "replay", "cut", "self"))
_checks: Final = st.sampled_from(("integrity", "provenance", "policy"))
_order: Final = st.permutations(range(28))
_edit: Final = st.tuples(_steps, st.integers(0, 3), st.sampled_from((None, 0.0, NOW * 2)))

LAWS: Final[Mapping[str, Law]] = {
    law.check.__name__: law
    for law in (
        Law(
            selective_recovery_is_a_restart, (fleets(), st.dictionaries(_steps, st.integers(0, 5)))
        ),
        Law(the_blast_radius_is_exact, (fleets(), st.sets(_steps, max_size=3))),
        Law(the_blast_radius_follows_what_is_current, (fleets(), _steps)),
        Law(nothing_is_run_behind_a_bad_step, (fleets(), _steps, _steps)),
        Law(an_update_is_judging_from_scratch, (fleets(), st.lists(_edit, max_size=5))),
        Law(growth_is_judging_from_scratch, (fleets(), st.permutations(range(9)))),
        Law(the_order_of_arrival_is_none, (fleets(), _order, _steps)),
        Law(
            a_hostile_store_adds_no_trust,
            (
                fleets(),
                st.lists(st.tuples(_acts, st.integers(0, 20), st.integers(0, 20)), max_size=8),
            ),
        ),
        Law(a_cycle_does_not_vouch_for_itself, (fleets(), _ends)),
        Law(a_cycle_that_opens_is_forgotten, (fleets(), _ends)),
        Law(
            time_heals_nothing,
            (
                fleets(),
                st.lists(st.one_of(st.none(), st.floats(1, 50)), min_size=9, max_size=9),
                st.tuples(_time, _time),
                st.sampled_from((0.0, 1.0, 30.0)),
            ),
        ),
        Law(what_is_missing_is_not_trusted, (fleets(), _steps)),
        Law(a_rule_that_changed_judges_anew, (fleets(),)),
        Law(a_checker_that_raises_blocks, (fleets(), _steps, _checks)),
        Law(an_effect_needs_clean_inputs, (fleets(), _steps)),
        Law(a_check_that_finds_nothing_changes_nothing, (fleets(), odds)),
        Law(the_order_of_reading_is_none, (fleets(), odds)),
    )
}
