"""What a comment says: worst first, and never a false pass."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from backstop.core.divergence import Kind
from backstop.core.verdict import Coverage, Decision, Judged, Verdict
from backstop.reports.body import State, state_of
from backstop.reports.carried import carry_forward, remembered
from backstop.reports.comment import (
    MAX_COMMENT,
    marker,
    render_comment,
    render_error,
    render_not_applicable,
)
from backstop.reports.context import CommentContext
from backstop.reports.document import digest_of
from backstop.reports.markdown import size
from backstop.reports.summary import render_error_summary
from tests.unit.reports.gfm import rendered
from tests.unit.reports.scenes import (
    CONTEXT,
    EARLIER,
    FIRST,
    SCENES,
    SEVERAL,
    TWICE,
    UNTOUCHED,
)
from tests.verdicts import (
    ACCEPTED,
    ASSUMED,
    BLOCKED,
    INCONCLUSIVE,
    NEW,
    PASSED,
    RELABELLED,
    WARNED,
    agent_verdict,
)


def headline(body: str) -> str:
    return next(line for line in body.split("\n") if line.startswith("## "))


@pytest.mark.parametrize("name", SCENES)
def test_every_comment_is_whole_and_within_the_limit(name: str) -> None:
    body = SCENES[name]
    page = rendered(body)
    assert page.faults == ()
    assert len(body) <= size(body) < MAX_COMMENT
    assert body.count("<details>") == body.count("</details>")


@pytest.mark.parametrize("name", SCENES)
def test_the_first_lines_are_the_marker_and_the_run(name: str) -> None:
    first, second, *_ = SCENES[name].split("\n")
    assert first == marker("backstop-yaml") == "<!-- backstop-gate:backstop-yaml -->"
    told = json.loads(second.removeprefix("<!-- backstop-run: ").removesuffix(" -->"))
    assert told.keys() == {"run", "attempt", "head", "digest"}
    assert (told["run"], told["attempt"], told["head"]) == (7, 1, CONTEXT.head)


def test_the_run_line_carries_the_digest_of_the_verdict() -> None:
    assert f'"digest":"{digest_of(TWICE)}"' in SCENES["block"].split("\n")[1]


@pytest.mark.parametrize("name", ["", "a b", "-->", "x--y", "x" * 65, "ü"])
def test_an_id_that_would_break_the_marker_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no id for a comment"):
        marker(name)


def test_every_state_has_a_headline_of_its_own() -> None:
    shown = {
        "block": State.BLOCKED,
        "pass": State.PASSED,
        "pass-with-warnings": State.WARNED,
        "inconclusive": State.INCONCLUSIVE,
        "bootstrap": State.EMPTY,
        "error": State.ERROR,
        "not-applicable": State.NOT_APPLICABLE,
    }
    assert {name: headline(SCENES[name]) for name in shown} == {
        name: f"## {state.value}" for name, state in shown.items()
    }
    assert len({state.value.split()[0] for state in State}) == len(State)
    assert set(shown.values()) == set(State)


def test_g08_a_first_pull_request_is_neither_green_by_accident_nor_red() -> None:
    """G08: nothing was compared, and --allow-empty let it pass: a look of its own."""
    body = render_comment(FIRST, CONTEXT)
    assert "nothing to compare yet" in headline(body)
    assert "this pass says nothing about the version" in body
    assert "✅" not in body


@pytest.mark.parametrize("name", sorted(set(SCENES) - {"error", "not-applicable"}))
def test_g13_the_line_below_the_headline_says_how_much_was_compared(name: str) -> None:
    """G13: 'never compared' and 'no regression' look unlike each other."""
    lines = SCENES[name].split("\n")
    below = lines[lines.index(headline(SCENES[name])) + 2]
    assert re.match(r"Compared \*\*[\d,]+ of [\d,]+ runs?\*\*", below)


def test_g12_a_pass_over_nothing_is_not_called_a_pass() -> None:
    """G12: 0 runs replayed is no pass, whatever let it through."""
    empty = replace(PASSED.agents[0], coverage=Coverage(runs_compared=0, runs_total=7))
    assert state_of(Verdict(agents=(empty,))) is State.EMPTY


def test_an_error_says_that_nothing_was_judged() -> None:
    body = SCENES["error"]
    assert "This is no pass: the check fails (exit code 2)." in body
    assert "`error[image-build]`" in body
    assert "errors.md#image-build" in body
    assert "::error::forged" in body
    assert "exit code 3" in render_error("no-ledger", "x", CONTEXT, exit_code=3)
    assert render_error_summary("no-ledger", "x", CONTEXT).startswith("## 💥")


def test_a_long_output_keeps_its_end() -> None:
    log = "\n".join(f"line {number}" for number in range(5_000))
    body = render_error("build", "x", CONTEXT, log=log)
    assert "line 4999" in body
    assert "line 100\n" not in body


def test_three_duplicates_are_three_rows_that_block() -> None:
    rows = [line for line in SCENES["block"].split("\n") if line.startswith("| ⛔")]
    assert len(rows) == 3
    assert all("DUPLICATE" in row and "create_purchase_order" in row for row in rows)
    assert [step for row in rows for step in re.findall(r"`(s\d+)`", row)] == ["s7", "s11", "s15"]


def test_each_finding_says_how_to_waive_it_and_what_removes_it() -> None:
    body = SCENES["block"]
    for judged in TWICE.agents[0].judged:
        assert f'backstop waive {judged.divergence.fingerprint} --reason "..."' in body
    assert "`create_purchase_order: {fields: {vendor_id: slug}}`" in body


def test_the_command_to_see_it_again_is_there() -> None:
    body = SCENES["block"]
    assert f"git worktree add --detach ../backstop-base {CONTEXT.base}\n" in body
    assert "--candidate agents/vendor_onboarding \\\n" in body
    short = render_comment(TWICE, CommentContext(config="other file.yaml", sandbox="none"))
    assert (
        "backstop gate --config 'other file.yaml' --agent vendor-onboarding --runtime none" in short
    )


def test_a_pass_is_short() -> None:
    assert len(SCENES["pass"].split("\n")) < 16


def test_what_blocks_comes_first() -> None:
    """With MISSING as the one kind that blocks, it stands above DUPLICATE."""
    body = render_comment(BLOCKED, replace(CONTEXT, fail_on=frozenset({Kind.MISSING})))
    rows = re.findall(r"^\| (⛔|⚠️)&nbsp;\d+ \| \*\*\[(\w+)\]", body, re.MULTILINE)
    assert rows[0] == ("⛔", "MISSING")
    assert [mark for mark, _ in rows] == ["⛔", "⚠️", "⚠️", "⚠️", "⚠️"]


def test_g23_findings_of_the_base_stand_apart() -> None:
    """G23: a finding that base has too is marked, folded, and not among those that count."""
    body = SCENES["everything"]
    assert "<summary>1 finding also on base, not blocking: " in body
    assert "**2 DUPLICATE**" in body
    assert "1 also on base" in body
    table = body.partition("<details>")[0]
    assert len(re.findall(r"^\| (?:⛔|⚠️)", table, re.MULTILINE)) == 5


def test_what_is_waived_known_or_assumed_stands_apart_too() -> None:
    found = (
        Judged(divergence=RELABELLED, known=True),
        Judged(divergence=RELABELLED, waiver="agreed"),
        ASSUMED,
    )
    body = render_comment(Verdict(agents=(agent_verdict(*found, decision=Decision.PASS),)), CONTEXT)
    assert headline(body) == f"## {State.PASSED.value}"
    for said in ("1 finding known of the baseline", "1 finding waived", "1 finding assumed"):
        assert f"<summary>{said}, not blocking: " in body
    assert "waived: `agreed`" in body


def test_what_a_change_accepts_by_itself_stands_on_top() -> None:
    """D4: waivers that the pull request adds are the first thing after the counts."""
    body = SCENES["accepted"]
    top = body.partition("\n| ")[0]
    assert "> **This change accepts findings itself.** Review each:" in top
    assert body.index("accepts findings itself") < body.index("<sub>Ledger")
    for use in ACCEPTED.agents[0].waivers:
        assert (use.waiver.about in top) is use.waiver.added


def test_a_waiver_is_named_by_its_fingerprint() -> None:
    for use in ACCEPTED.agents[0].waivers:
        assert f"`{use.waiver.about}`" in SCENES["accepted"]


def test_the_baseline_is_named_where_it_lets_findings_pass() -> None:
    use = ACCEPTED.agents[0].baseline
    assert use is not None
    assert f"**{use.known} known finding" in SCENES["accepted"]


def test_an_inconclusive_verdict_says_what_is_missing() -> None:
    body = SCENES["inconclusive"]
    assert "> **This is not a pass.** What is missing:" in body
    assert "> - run `r7` was not replayed to its end: agent-hangs" in body


def test_several_agents_share_one_comment() -> None:
    """G32: one comment, an overview, a section for each that has something to say."""
    body = SCENES["several"]
    sections = re.findall(r"^### (.*)$", body, re.MULTILINE)
    assert sections == ["⛔ `vendor-onboarding`: blocked", "❓ `airline`: inconclusive"]
    assert "| ✅ `billing`: pass | 7&nbsp;of&nbsp;7 |" in body
    assert "🌱 `fresh`: new" in body


def test_g09_an_untouched_agent_is_not_judged_and_not_missing() -> None:
    """G09: carried forward as of the commit that it was judged at, and not counted."""
    body = SCENES["several"]
    assert "⚪ `desk`: not touched" in body
    assert "pass as of <code>fedcba9</code>, does not count now" in body
    assert "MISSING" not in body
    assert "desk" not in body.partition("**Next:**")[2]


def test_g20_a_change_that_touches_no_agent_is_not_applicable() -> None:
    """G20: with or without a verdict, and it is no pass."""
    formal = replace(PASSED.agents[0], agent="desk", coverage=Coverage())
    verdict = Verdict(agents=(formal,))
    for body in (render_not_applicable(UNTOUCHED), render_comment(verdict, UNTOUCHED)):
        assert headline(body) == f"## {State.NOT_APPLICABLE.value}"
        assert "✅" not in body


@pytest.mark.parametrize("verdict", [BLOCKED, INCONCLUSIVE, WARNED, PASSED])
def test_an_agent_with_something_to_say_is_never_passed_over(verdict: Verdict) -> None:
    names = tuple(agent.agent for agent in verdict.agents)
    told = replace(CONTEXT, untouched=names)
    assert state_of(verdict, names) is state_of(verdict)
    assert headline(render_comment(verdict, told)) == headline(render_comment(verdict, CONTEXT))


def test_an_agent_that_is_judged_again_is_not_carried_too() -> None:
    judged = Verdict(agents=(replace(PASSED.agents[0], agent="desk"),))
    body = render_comment(judged, replace(CONTEXT, carried=(EARLIER,)))
    assert "is not touched" not in body
    assert body.count('"agent":"desk"') == 1
    assert carry_forward(body, "desk") == remembered(
        judged.agents[0], head=CONTEXT.head, show_values=False
    )


def test_a_new_agent_with_notes_is_said_to_be_new() -> None:
    fresh = replace(SEVERAL.agents[-1], notes=("no ledger yet",))
    body = render_comment(Verdict(agents=(PASSED.agents[0], fresh)), CONTEXT)
    assert "New: there is no history to judge it by yet, so it does not count." in body
    assert headline(body) == f"## {State.PASSED.value}"


def test_a_finding_of_a_handover_and_one_of_many_arguments_are_explained() -> None:
    open_run = replace(NEW, handover=True)
    verdict = Verdict(agents=(agent_verdict(open_run),))
    body = render_comment(verdict, replace(CONTEXT, show_values=True))
    assert "*Only a version that takes the open run over shows it" in body
    assert "| and 4 more |" in body


def test_empty_verdicts_are_no_pass() -> None:
    assert state_of(Verdict(agents=())) is State.INCONCLUSIVE
    assert "0 of 0 runs" in render_comment(Verdict(agents=()), CommentContext())


def test_the_same_verdict_gives_the_same_text() -> None:
    assert render_comment(SEVERAL, UNTOUCHED) == SCENES["several"]


def test_whoever_brings_a_first_agent_is_told_how_it_passes() -> None:
    new = replace(agent_verdict(agent="fresh", decision=Decision.PASS), neutral=True)
    body = render_comment(Verdict(agents=(new,)), CONTEXT)
    assert "**Next:** bring a ledger" in body
    assert "`allow-empty: true`" in body
    beside = Verdict(agents=(new, INCONCLUSIVE.agents[0]))
    assert "bring a ledger" not in render_comment(beside, CONTEXT)
