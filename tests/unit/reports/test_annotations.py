"""Few annotations, the worst first, each one line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backstop.core.divergence import Kind
from backstop.core.verdict import Judged, Verdict
from backstop.reports.annotations import (
    MAX_MESSAGE,
    MAX_OF_A_LEVEL,
    Level,
    annotations_of,
    error_annotation,
)
from backstop.reports.context import CommentContext, Place
from tests.unit.reports.scenes import CONTEXT, THOUSANDS, TWICE
from tests.verdicts import (
    ATTACKED,
    BLOCKED,
    CHANGED,
    HOSTILE,
    INCONCLUSIVE,
    PASSED,
    RELABELLED,
    agent_verdict,
)


def test_a_finding_that_blocks_is_an_error_beside_the_agents_file() -> None:
    place = Place(file="agents/vendor_onboarding/agent.py", line=3)
    told = annotations_of(TWICE, replace(CONTEXT, places={"vendor-onboarding": place}))
    assert [one.level for one in told] == [Level.ERROR] * 3
    assert [one.place for one in told] == [place] * 3
    assert told[0].title == "DUPLICATE relabelled: create_purchase_order, vendor-onboarding"
    assert "Run acme-2026, step s7. What removes it: declare vendor_id: slug" in told[0].message
    assert "acme-corp" not in told[0].message


def test_what_does_not_block_is_a_warning() -> None:
    told = annotations_of(BLOCKED, CONTEXT)
    assert [one.level for one in told] == [Level.ERROR] * 2 + [Level.WARNING] * 3
    strict = annotations_of(BLOCKED, replace(CONTEXT, fail_on=frozenset(Kind)))
    assert {one.level for one in strict} == {Level.ERROR}


def test_a_reason_for_doubt_is_an_error_since_it_is_no_pass() -> None:
    (told,) = annotations_of(INCONCLUSIVE, CONTEXT)
    assert told.level is Level.ERROR
    assert told.title == "Backstop: vendor-onboarding is inconclusive, not a pass"
    assert told.message == "run r7 was not replayed to its end: agent-hangs"


def test_what_is_new_is_annotated_only_where_the_check_fails_for_it() -> None:
    new = replace(PASSED.agents[0], agent="fresh", neutral=True, why=("NEW: no ledger",))
    (told,) = annotations_of(Verdict(agents=(new,)), CONTEXT)
    assert (told.level, told.message) == (Level.ERROR, "NEW: no ledger")
    assert annotations_of(Verdict(agents=(new, PASSED.agents[0])), CONTEXT) == ()


def test_what_does_not_count_is_not_annotated() -> None:
    quiet = agent_verdict(
        Judged(divergence=RELABELLED, pre_existing=True),
        Judged(divergence=RELABELLED, known=True),
        Judged(divergence=RELABELLED, waiver="agreed"),
    )
    assert annotations_of(Verdict(agents=(quiet,)), CONTEXT) == ()
    assert annotations_of(PASSED, CONTEXT) == ()


def test_of_thousands_ten_a_level_are_told_and_the_last_counts_the_rest() -> None:
    told = annotations_of(THOUSANDS, CONTEXT)
    errors = [one for one in told if one.level is Level.ERROR]
    warnings = [one for one in told if one.level is Level.WARNING]
    assert (len(errors), len(warnings)) == (MAX_OF_A_LEVEL, MAX_OF_A_LEVEL)
    assert errors[-1].message.startswith("and 3,991 more")
    assert warnings[-1].message.startswith("and 992 more")
    exactly = annotations_of(Verdict(agents=(agent_verdict(*[CHANGED] * 10),)), CONTEXT)
    assert len(exactly) == 10
    assert "more" not in exactly[-1].message


@pytest.mark.parametrize("show_values", [False, True])
def test_a_hostile_name_stays_one_line_of_bounded_length(show_values: bool) -> None:
    long = replace(RELABELLED, tool=HOSTILE * 500, run="x" * 9_999, paths=("/" + "y" * 9_999,))
    verdict = Verdict(agents=(*ATTACKED.agents, agent_verdict(long)))
    for one in annotations_of(verdict, replace(CONTEXT, show_values=show_values)):
        assert len(one.message) <= MAX_MESSAGE
        assert len(one.title) < 256
        assert one.message.isprintable()
        assert one.title.isprintable()


def test_an_error_is_one_annotation() -> None:
    told = error_annotation("image-build", "no wheel\nof ana@example.org", CommentContext())
    assert told.title == "Backstop error: image-build"
    assert told.message == "no wheel\\nof [address]"
