"""Tools that a version does not have any more are named where no finding names them."""

from __future__ import annotations

from dataclasses import replace

from backstop.core.declaration import Declaration
from backstop.core.history import Outcome
from tests.comparing import call, out
from tests.unit.gate.test_decision_rules import asked, judged, recorded

PAY = call("pay", vendor="acme-corp", amount=10)
DOUBTED = recorded([out(PAY, outcome=Outcome.IN_DOUBT), out(PAY, step="s1", outcome=Outcome.OPEN)])


def notes(*tools: str, **declared: Declaration) -> tuple[str, ...]:
    candidate = replace(asked([], version="v1"), schemas={tool: {} for tool in tools})
    return judged(DOUBTED, candidate, declarations=(declared,)).notes


def test_a_tool_that_is_gone_is_named_with_its_runs_once() -> None:
    assert notes("mail") == ("pay is no tool of this version; calls of it are in doubt in run r1",)
    assert notes("mail", "pay") == ()


def test_a_tool_by_another_name_is_not_gone() -> None:
    assert notes("settle", settle=Declaration(tool="settle", aliases=("pay",))) == ()


def test_where_nobody_knows_the_versions_tools_nothing_is_said() -> None:
    assert judged(DOUBTED, asked([], version="v1")).notes == ()


def test_what_went_out_is_missing_and_a_finding_names_it() -> None:
    candidate = replace(asked([], version="v1"), schemas={"mail": {}})
    verdict = judged(recorded([out(PAY)]), candidate)
    assert verdict.notes == ()
    assert verdict.counts["missing"] == 1


def test_of_many_runs_the_first_are_named() -> None:
    rows = [out(PAY, run=f"r{number}", outcome=Outcome.OPEN) for number in range(1, 8)]
    candidate = replace(asked([], version="v1"), schemas={})
    (note,) = judged(recorded(rows), candidate).notes
    assert note.endswith("in run r1, r2, r3, r4, r5 and 2 more")
