"""Faults to plant in the core of the mesh: each is a way in which such code is wrong elsewhere."""

from __future__ import annotations

from typing import Final, NamedTuple


class Fault(NamedTuple):
    """`healthy` is what stands in `module`; `fault` takes its place, and `law` finds it."""

    law: str
    module: str
    healthy: str
    fault: str


FAULTS: Final = {
    # What is read
    "digests of inputs are not compared": Fault(
        "selective_recovery_is_a_restart",
        "trustverdicts",
        "elif record.output != dep.digest:",
        "elif False:",
    ),
    "no digest makes anybody look closely": Fault(
        "selective_recovery_is_a_restart",
        "trustverdicts",
        " or record.output != dep.digest:",
        ":",
    ),
    "inputs are told apart by their attempts, so nothing is cut off": Fault(
        "selective_recovery_is_a_restart",
        "trustverdicts",
        "                record = above.checkpoint\n",
        "                record = above.checkpoint\n"
        "                if record and record.gen > checkpoint.gen:\n"
        "                    return _blocked(Reason.INPUT_DIGEST, dep.ref)\n",
    ),
    "a missing input is passed over": Fault(
        "what_is_missing_is_not_trusted",
        "trustverdicts",
        "                return _blocked(Reason.MISSING_DEP, dep.ref)\n",
        "                continue\n",
    ),
    "only what was made directly from a bad step is bad": Fault(
        "the_blast_radius_is_exact",
        "trustverdicts",
        "            if verdict.badness:\n",
        "            if verdict.badness and not verdict.own:\n"
        "                continue\n"
        "            if verdict.badness:\n",
    ),
    "the best input counts, not the worst": Fault(
        "the_blast_radius_is_exact",
        "trustverdicts",
        "        if bad:\n            return _inherited",
        "        if bad and any(not self[dep.ref].badness for dep in checkpoint.upstream):\n"
        "            return _EVER\n"
        "        if bad:\n            return _inherited",
    ),
    "an effect is run again like any step": Fault(
        "an_effect_needs_clean_inputs",
        "trustverdicts",
        "if checkpoint.kind is StepKind.EFFECT:",
        "if False:",
    ),
    "an input's horizon is not passed on": Fault(
        "time_heals_nothing",
        "trustverdicts",
        "elif verdict.horizon < horizon and not bad:",
        "elif False:",
    ),
    # Order and cycles
    "a cycle vouches for itself": Fault(
        "a_cycle_does_not_vouch_for_itself",
        "trustverdicts",
        "table[node.index] = _blocked(Reason.CYCLE, node.step)",
        "table[node.index] = _EVER",
    ),
    "steps are judged in the order in which they came": Fault(
        "growth_is_judging_from_scratch",
        "trustgraph",
        "            if node.below:\n",
        "            if node.below and not refs:\n",
    ),
    "a later attempt keeps its place whatever it reads": Fault(
        "a_cycle_does_not_vouch_for_itself",
        "trustgraph",
        "self._nodes[ref].place >= node.place for ref",
        "self._nodes[ref].place >= node.place + len(self._order) for ref",
    ),
    # Arrival
    "of two bodies the last wins": Fault(
        "the_order_of_arrival_is_none",
        "trustgraph",
        "        node.conflict = True\n",
        "        self._set(node, other)\n        return True\n",
    ),
    "of two bodies the first that came is kept": Fault(
        "the_order_of_arrival_is_none",
        "trustgraph",
        "            self._set(node, first)\n",
        "            pass\n",
    ),
    "an old attempt comes back": Fault(
        "the_order_of_arrival_is_none",
        "trustgraph",
        "if known is not None and checkpoint.gen < known.gen:",
        "if known is not None and _same(known, checkpoint):",
    ),
    "a conflict is for ever": Fault(
        "the_order_of_arrival_is_none", "trustgraph", "        node.conflict = False\n", ""
    ),
    "a later attempt is still known to what it read before": Fault(
        "the_blast_radius_follows_what_is_current",
        "trustgraph",
        "            self._nodes[ref].below.remove(node)\n",
        "            pass\n",
    ),
    # Updates
    "an update ends where the verdict is as before though the output is not": Fault(
        "an_update_is_judging_from_scratch",
        "trustverdicts",
        "            elif node.step not in moved:\n                continue\n",
        "            else:\n                continue\n",
    ),
    "an update looks at states and not at horizons": Fault(
        "an_update_is_judging_from_scratch",
        "trustverdicts",
        "if verdict != self._table[node.index]:",
        "if getattr(verdict, 'state', 0) != getattr(self._table[node.index], 'state', 1):",
    ),
    "an update goes one step far": Fault(
        "an_update_is_judging_from_scratch",
        "trustverdicts",
        "            for below in node.below:\n",
        "            for below in node.below if node.step in moved else ():\n",
    ),
    "the blast radius ends at the first neighbours": Fault(
        "the_blast_radius_is_exact", "trustgraph", "                    reached.append(below)\n", ""
    ),
    # Own checks
    "a checker that raises has passed": Fault(
        "a_checker_that_raises_blocks", "trust", "fault = Reason.CHECK_ERROR", "fault = None"
    ),
    "the margin of the clocks is left out": Fault(
        "time_heals_nothing",
        "trust",
        "self._latest = now + world.skew",
        "self._latest = now",
    ),
    "the clock is believed": Fault(
        "time_heals_nothing",
        "trust",
        "now = max(world.now, world.high_water)\n",
        "now = world.now\n",
    ),
    "the rule's version is not looked at": Fault(
        "a_rule_that_changed_judges_anew",
        "trust",
        "if dep.kind is DepKind.POLICY and pinned != dep.digest:",
        "if False:",
    ),
    "signatures are not looked at": Fault(
        "a_hostile_store_adds_no_trust",
        "trust",
        "(world.provenance and world.provenance(checkpoint))",
        "None",
    ),
    "outputs are not looked at": Fault(
        "the_blast_radius_is_exact",
        "trust",
        "(world.integrity and world.integrity(checkpoint))",
        "None",
    ),
    "what is fresh is so for ever": Fault(
        "time_heals_nothing",
        "trust",
        "            horizon\n            if seen <=",
        "            inf\n            if seen <=",
    ),
    "times are not looked at": Fault(
        "a_check_that_finds_nothing_changes_nothing",
        "trust",
        "horizon = inf if checkpoint.ttl is None else seen + checkpoint.ttl",
        "horizon = inf",
    ),
    # The short way to a verdict, and the long one
    "the long way forgets until when a record is fresh": Fault(
        "a_check_that_finds_nothing_changes_nothing",
        "trust",
        "return (None if self._latest < horizon else Reason.STALE), horizon",
        "return (None if self._latest < horizon else Reason.STALE), inf",
    ),
    "an input that changed while it was read is seen the long way only": Fault(
        "a_check_that_finds_nothing_changes_nothing",
        "trustverdicts",
        "if own.plain and not node.unsteady:",
        "if own.plain:",
    ),
    "the short way knows no breaks": Fault(
        "a_check_that_finds_nothing_changes_nothing",
        "trust",
        "            and not checkpoint.seq < self._broken_before.get(checkpoint.step, 0)\n",
        "",
    ),
    "the short way does not ask who vouches": Fault(
        "a_check_that_finds_nothing_changes_nothing",
        "trust",
        "            and producer in world.producers\n",
        "",
    ),
    "the short way believes who was revoked": Fault(
        "a_check_that_finds_nothing_changes_nothing",
        "trust",
        "            and producer not in world.revoked_producers\n",
        "",
    ),
    "the short way takes any form": Fault(
        "a_check_that_finds_nothing_changes_nothing",
        "trust",
        "            and checkpoint.schema == CHECKPOINT_SCHEMA\n",
        "",
    ),
    "the short way takes a record of nothing": Fault(
        "a_check_that_finds_nothing_changes_nothing",
        "trust",
        "            and checkpoint.output\n",
        "",
    ),
    "the short way takes a time that is no number": Fault(
        "a_check_that_finds_nothing_changes_nothing",
        "trust",
        "if seen <= self._latest < horizon",
        "if seen <= self._latest and not self._latest >= horizon",
    ),
    "the short way lets a rule change like any input": Fault(
        "a_check_that_finds_nothing_changes_nothing",
        "trustverdicts",
        "if pinned is None or kind is DepKind.POLICY:",
        "if pinned is None:",
    ),
    "the short way takes a rule that nobody pins": Fault(
        "a_check_that_finds_nothing_changes_nothing",
        "trustverdicts",
        " and (pinned is not None or kind in MUST_BE_PINNED):",
        " and pinned is not None:",
    ),
    "of inputs as bad as each other the first that was read is named": Fault(
        "the_order_of_reading_is_none",
        "trustverdicts",
        "for dep in sorted(odd, key=_upstream_first):",
        "for dep in odd:",
    ),
    "of what is missing the first that was read is named": Fault(
        "the_order_of_reading_is_none",
        "trustverdicts",
        "return _blocked(Reason.MISSING_DEP, min(missing))",
        "return _blocked(Reason.MISSING_DEP, missing[0])",
    ),
    # Recovery
    "everything planned is run": Fault(
        "selective_recovery_is_a_restart",
        "recovery",
        "    if verdicts[step].badness is not Badness.REPAIRABLE:\n        return False\n",
        "",
    ),
    "the plan is in no order": Fault(
        "selective_recovery_is_a_restart",
        "recovery",
        "for step in begun.rerun:",
        "for step in sorted(begun.rerun, reverse=True):",
    ),
    "a step is run on inputs that are not verified": Fault(
        "nothing_is_run_behind_a_bad_step",
        "recovery",
        "return all(verdicts[dep.ref].state is State.VERIFIED for dep in inputs)",
        "return True",
    ),
    "only the first wave is run": Fault(
        "selective_recovery_is_a_restart", "recovery", "        verdicts.update({step})\n", ""
    ),
}
