"""A model that makes histories and versions with known edits, and predicts the verdict.

Every call of the history has a target and a step of its own, so that an edit cannot meet
another; the comparison must then name exactly the edits that were made.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from backstop.core.declaration import Declaration, Scope
from backstop.core.history import Row
from backstop.core.intents import Intent
from backstop.core.keying import Rules
from tests.comparing import NAMESPACE, Called, ask, call, compared, out

RUNS = ("r1", "r2", "r3")
TOOLS = ("pay", "book", "remind", "order")
DECLARED: Mapping[str, Declaration] = {
    "pay": Declaration(tool="pay", identity=("to",)),
    "book": Declaration(tool="book"),
    "remind": Declaration(tool="remind", identity=("to",), scope=Scope.STEP),
    "order": Declaration(tool="order", identity=("to",)),
}
CANDIDATE: Mapping[str, Declaration] = {
    **{tool: one for tool, one in DECLARED.items() if tool != "order"},
    "purchase": Declaration(tool="purchase", identity=("party",)),
    "batch": Declaration(tool="batch"),
}


class Versions(RuleBasedStateMachine):
    """History grows call by call; each call is edited at most once."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Row] = []
        self.intents: list[Intent] = []
        self.untouched: list[tuple[Row, Intent, Called]] = []
        self.expected: Counter[tuple[str, str, str, str]] = Counter()
        self.matched = self.absorbed = 0
        self.regrouped: set[str] = set()
        self.number = 0

    def _step(self) -> str:
        self.number += 2
        return f"s{self.number}"

    def _fresh(self, tool: str) -> Called:
        # Words, not counters: "v-1" and "V 1" fold to the same name, "v-1" and "v-2" do not.
        return call(tool, to=f"vendor-{self.number}-co", amount=self.number)

    def _record(self, tool: str, run: str) -> tuple[Row, Called, str]:
        step = self._step()
        called = self._fresh(tool)
        row = out(called, run=run, step=step, declared=DECLARED)
        self.rows.append(row)
        return row, called, step

    def _expect(self, kind: str, reason: str, run: str, step: str) -> None:
        self.expected[kind, reason, run, step] += 1

    @rule(tool=st.sampled_from(TOOLS[:3]), run=st.sampled_from(RUNS))
    def record(self, tool: str, run: str) -> None:
        """The new version still asks for it."""
        row, called, step = self._record(tool, run)
        intent = ask(called, run=run, step=step, declared=DECLARED)
        self.intents.append(intent)
        self.untouched.append((row, intent, called))
        self.matched += 1

    def _take(self, data: st.DataObject, *tools: str) -> tuple[Row, Called] | None:
        known = [one for one in self.untouched if one[0].tool in (tools or TOOLS)]
        if not known:
            return None
        chosen = data.draw(st.sampled_from(known))
        self.untouched.remove(chosen)
        row, intent, called = chosen
        self.intents.remove(intent)
        self.matched -= 1
        return row, called

    def _ask(self, called: Called, run: str, step: str) -> None:
        self.intents.append(ask(called, run=run, step=step, declared=CANDIDATE))

    @precondition(lambda self: self.untouched)
    @rule(data=st.data(), spelling=st.sampled_from((str.upper, str.title, "{}!".format)))
    def relabel(self, data: st.DataObject, spelling) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        """The target is spelled otherwise."""
        if taken := self._take(data):
            row, called = taken
            self._ask(called.but(to=spelling(called.args["to"])), row.run, row.step)
            self._expect("DUPLICATE", "relabelled", row.run, row.step)

    @precondition(lambda self: self.untouched)
    @rule(data=st.data())
    def retarget(self, data: st.DataObject) -> None:
        """Another target in the same step."""
        if taken := self._take(data, "pay", "remind"):
            row, called = taken
            self._ask(called.but(to=f"other-{row.step}-inc"), row.run, row.step)
            self._expect("DUPLICATE", "retargeted", row.run, row.step)

    @precondition(lambda self: self.untouched)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        """It is not asked for any more."""
        if taken := self._take(data):
            row, _ = taken
            self._expect("MISSING", "dropped", row.run, row.step)

    @rule(tool=st.sampled_from(TOOLS[:3]), run=st.sampled_from(RUNS))
    def add(self, tool: str, run: str) -> None:
        """Something never done is asked for."""
        step = self._step()
        self._ask(self._fresh(tool), run, step)
        self._expect("EXTRA", "new", run, step)

    @precondition(lambda self: self.untouched)
    @rule(data=st.data())
    def change(self, data: st.DataObject) -> None:
        """The same target, another amount."""
        if taken := self._take(data, "pay", "remind"):
            row, called = taken
            self._ask(called.but(amount=-1), row.run, row.step)
            self._expect("MUTATED", "changed", row.run, row.step)

    @precondition(lambda self: self.untouched)
    @rule(data=st.data(), later=st.booleans())
    def move(self, data: st.DataObject, later: bool) -> None:
        """It is asked for in another step."""
        if taken := self._take(data):
            row, called = taken
            step = f"s{row.cursor + (1 if later else -1)}"
            self._ask(called, row.run, step)
            if row.tool == "remind":
                self._expect("DUPLICATE", "moved", row.run, step)
            elif later:
                self.matched += 1
            else:
                self._expect("MUTATED", "moved earlier", row.run, step)

    @precondition(lambda self: self.untouched)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        """It is asked for twice: the guard sits on `pay` and `remind`, not on `book`."""
        if taken := self._take(data):
            row, called = taken
            self._ask(called, row.run, row.step)
            self._ask(called, row.run, row.step)
            self.matched += 1
            if row.tool == "book":
                self._expect("DUPLICATE", "repeated", row.run, row.step)
            else:
                self.absorbed += 1

    @rule(run=st.sampled_from(RUNS))
    def rename(self, run: str) -> None:
        """The tool and its parameter have new names, the target is the same."""
        row, called, step = self._record("order", run)
        self._ask(call("purchase", party=called.args["to"], sum=1), run, step)
        self._expect("DUPLICATE", "renamed", row.run, step)

    @rule(run=st.sampled_from(RUNS))
    def regroup(self, run: str) -> None:
        """One order becomes a batch of something else."""
        _, _, step = self._record("order", run)
        self._ask(call("batch", lines=[self.number]), run, step)
        self._expect("MISSING", "dropped", run, step)
        self._expect("EXTRA", "new", run, step)
        self.regrouped.add(run)

    @invariant()
    def the_verdict_names_exactly_the_edits(self) -> None:
        """Whatever the order of asking."""
        asked = self.intents[:]
        random.Random(self.number).shuffle(asked)
        comparison = compared(self.rows, asked, self._rules())
        named = Counter(
            (one.kind.value, one.reason.value, one.run, one.step) for one in comparison.divergences
        )
        assert named == self.expected
        assert comparison.matched == self.matched
        assert comparison.absorbed == self.absorbed
        assert set(comparison.regrouped) == self.regrouped
        assert comparison.unkeyed == ()

    def _rules(self) -> Rules:
        return Rules(
            namespace=NAMESPACE,
            recorded={one.digest: one for one in DECLARED.values()},
            declared=DECLARED,
            candidate=CANDIDATE,
            offered=frozenset(CANDIDATE),
            guarded=frozenset({"pay", "remind"}),
            replayed=True,
        )


Versions.TestCase.settings = settings(stateful_step_count=25)
TestVersions = Versions.TestCase
