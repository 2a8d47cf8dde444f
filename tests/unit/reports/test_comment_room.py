"""How much of a comment fits: whole pieces, shared fairly, and what is left out counted."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstop.core.verdict import Coverage, Decision, Judged, Verdict
from backstop.reports.carried import Carried
from backstop.reports.comment import (
    MAX_COMMENT,
    render_comment,
    render_error,
    render_not_applicable,
)
from backstop.reports.markdown import fitting, shares, size
from backstop.reports.summary import MAX_SUMMARY, render_summary
from tests.unit.reports.gfm import rendered
from tests.unit.reports.hostile import verdict_of
from tests.unit.reports.scenes import (
    CONTEXT,
    EARLIER,
    SCENES,
    THOUSANDS,
    TWICE,
)
from tests.verdicts import (
    BLOCKED,
    CHANGED,
    HOSTILE,
    PASSED,
    RELABELLED,
    agent_verdict,
)


def test_thousands_of_findings_give_the_worst_and_a_count() -> None:
    body = SCENES["thousands"]
    rows = re.findall(r"^\| (?:⛔|⚠️)&nbsp;\d+ \| \*\*\[(\w+)\]", body, re.MULTILINE)
    assert rows[0] == "DUPLICATE"
    assert "**4,000 DUPLICATE**" in body
    assert "more** in the full report" in body
    assert "### ⚠️ `airline`: pass with warnings" in body
    assert "MUTATED" in body


def test_the_summary_holds_more_and_stays_below_its_limit() -> None:
    comment, summary = SCENES["thousands"], render_summary(THOUSANDS, CONTEXT)
    assert size(summary) < MAX_SUMMARY
    assert summary.count("⛔&nbsp;") > comment.count("⛔&nbsp;")
    assert "<!--" not in summary
    assert rendered(summary).faults == ()


@pytest.mark.parametrize("agents", [1, 2, 9, 60])
def test_agents_that_talk_much_leave_room_for_each_other(agents: int) -> None:
    """However many and however hostile they are: in the limit, whole, and said what is left out."""
    talker = BLOCKED.agents[0]
    loud = [
        replace(
            talker,
            agent=f"agent-{number}",
            notes=(HOSTILE * 20,) * 9,
            judged=tuple(
                Judged(divergence=replace(RELABELLED, tool=HOSTILE * 9, run="x" * 99))
                for _ in range(40)
            ),
        )
        for number in range(agents)
    ]
    body = render_comment(Verdict(agents=tuple(loud)), CONTEXT)
    assert size(body) < MAX_COMMENT
    assert rendered(body).faults == ()
    shown = len(re.findall(r"^### ", body, re.MULTILINE))
    assert agents in {shown, 1} or re.search(rf"{agents - shown} more agents? in the", body)


@pytest.mark.parametrize("sign", ["\u202e", "東", "`", "x "])
def test_long_words_hide_no_finding(sign: str) -> None:
    """Whoever floods reasons, notes, waivers and names cannot push the findings out."""
    flood = verdict_of(sign * 2_000)
    loud = replace(
        flood.agents[0],
        why=(sign * 2_000,) * 40,
        notes=(sign * 2_000,) * 40,
        waivers=flood.agents[0].waivers * 40,
        coverage=Coverage(drifted={f"{sign * 99}{n}": (sign * 40,) * 9 for n in range(99)}),
    )
    for decision in (Decision.BLOCK, Decision.INCONCLUSIVE):
        verdict = Verdict(agents=(replace(loud, decision=decision),))
        told = replace(CONTEXT, notes=(sign * 2_000,) * 40, versions={sign * 999: sign * 999})
        body = render_comment(verdict, told)
        assert size(body) < MAX_COMMENT
        assert "[DUPLICATE]" in body
        assert "more agent" not in body
        assert rendered(body).faults == ()


def test_more_agents_than_there_is_room_for_are_counted() -> None:
    agents = tuple(replace(PASSED.agents[0], agent=f"agent-{number}") for number in range(900))
    body = render_comment(Verdict(agents=agents), CONTEXT)
    assert re.search(r"^… and \d+ more agents\.$", body, re.MULTILINE)
    assert "Compared **6,300 of 6,300 runs**" in body


def test_many_findings_that_do_not_count_are_counted() -> None:
    known = [Judged(divergence=CHANGED, pre_existing=True)] * 70
    body = render_comment(Verdict(agents=(agent_verdict(*known),)), CONTEXT)
    assert "<summary>70 findings also on base, not blocking: " in body
    assert "… and 20 more in the full report" in body


def test_a_flood_leaves_an_error_readable() -> None:
    """The line that says what is wrong, and the end of the output, whatever else there is."""
    flood = "東" * 9_000
    carried = tuple(replace_name(EARLIER, f"agent-{number}") for number in range(200))
    told = replace(CONTEXT, notes=(flood,) * 40, carried=carried)
    body = render_error("build", flood, told, log=f"{flood}\n" * 300 + "the very end")
    assert size(body) < MAX_COMMENT
    assert "the very end" in body
    assert rendered(body).faults == ()
    for other in (render_not_applicable(told), render_comment(TWICE, told)):
        assert size(other) < MAX_COMMENT
        assert rendered(other).faults == ()


def replace_name(carried: Carried, name: str) -> Carried:
    return msgspec.structs.replace(carried, agent=name)


@given(st.lists(st.integers(0, 200), max_size=8), st.integers(0, 600))
def test_room_is_shared_fairly(needs: list[int], room: int) -> None:
    given_out = shares(needs, room)
    assert sum(given_out) <= room or not needs
    assert all(got <= need for got, need in zip(given_out, needs, strict=True))
    # Nobody goes short while another gets more than it, or while room is left.
    short = [got for got, need in zip(given_out, needs, strict=True) if got < need]
    assert all(max(given_out) - got <= 1 for got in short)
    assert not short or room - sum(given_out) < len(needs)


@given(st.lists(st.text(max_size=9), max_size=9), st.integers(0, 60))
def test_what_fits_is_a_beginning_of_whole_pieces(pieces: list[str], room: int) -> None:
    taken = fitting(pieces, room)
    assert pieces[: len(taken)] == taken
    assert sum(size(piece) + 1 for piece in taken) <= room or not taken
