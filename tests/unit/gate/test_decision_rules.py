"""Rules D1-D7 and S2 of semantics.md, each with the case that forced it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import pytest

from backstop.core.declaration import Declaration
from backstop.core.divergence import Kind, Reason
from backstop.core.events import Header
from backstop.core.history import Outcome, Row
from backstop.core.intents import Intent, Pass, RunReplayed
from backstop.core.verdict import AgentVerdict, Decision, Policy, Verdict, worst
from backstop.gate.comparing import Asked
from backstop.gate.judge import Recorded, judge
from backstop.gate.lacking import Lacking
from tests.comparing import DECLARED, NAMESPACE, ask, call, history, out

ACME = call("pay", vendor="acme-corp", amount=10)
RENAMED = ACME.but(vendor="ACME Corp")


def recorded(
    rows: Sequence[Row],
    *,
    still_open: frozenset[str] = frozenset(),
    declared: Mapping[str, Declaration] = DECLARED,
) -> Recorded:
    """A ledger of these rows."""
    told = history(rows)
    told.open = set(still_open)
    header = Header(
        format=1,
        agent=NAMESPACE.agent,
        canon=1,
        guarded=True,
        tools={tool: one.digest for tool, one in declared.items()},
        declarations={one.digest: one for one in declared.values()},
    )
    return Recorded(header=header, history=told, digest="0" * 64)


def asked(
    intents: Sequence[Intent],
    *,
    runs: Sequence[RunReplayed] = (RunReplayed(run="r1", steps_total=3),),
    uncovered: tuple[str, ...] = (),
    version: str = "v2",
) -> Asked:
    """A replay that asked for these intents."""
    return Asked(
        intents=intents,
        keyed_under=DECLARED,
        replayed={run.run: run for run in runs},
        uncovered=uncovered,
        version=version,
    )


def judged(
    ledger: Recorded,
    candidate: Asked,
    *,
    control: Asked | Lacking = Lacking.UNNAMED,
    declarations: Sequence[Mapping[str, Declaration]] = (DECLARED,),
    policies: Sequence[Policy] = (Policy(),),
    subtract: bool = True,
) -> AgentVerdict:
    """The verdict under the usual rules."""
    return judge(
        ledger,
        candidate,
        control=control,
        declarations=declarations,
        policies=policies,
        namespace=NAMESPACE,
        guarded=True,
        subtract=subtract,
    )


def test_a_duplicate_blocks_and_a_match_passes() -> None:
    """The control of these tests: both answers are possible."""
    ledger = recorded([out(ACME)])
    assert judged(ledger, asked([ask(ACME)])).decision is Decision.PASS
    blocked = judged(ledger, asked([ask(RENAMED)]))
    assert blocked.decision is Decision.BLOCK
    assert blocked.why == ("1 DUPLICATE",)


@pytest.mark.parametrize(
    ("kind", "intents"),
    [
        (Kind.MISSING, []),
        (Kind.MUTATED, [ask(ACME.but(amount=11))]),
        (Kind.EXTRA, [ask(ACME), ask(call("mail", to="x"))]),
    ],
)
def test_other_kinds_warn_unless_the_policy_says_otherwise(
    kind: Kind, intents: list[Intent]
) -> None:
    """Design 9: DUPLICATE blocks by default, the others by `fail_on`."""
    ledger = recorded([out(ACME)])
    assert judged(ledger, asked(intents)).decision is Decision.PASS
    strict = Policy(fail_on=frozenset({kind}))
    assert judged(ledger, asked(intents), policies=[strict]).decision is Decision.BLOCK


def test_g7_a_guard_that_no_version_attaches_itself_stands_before_the_next_one_too() -> None:
    """G7: with ``--extra_plugins`` the server attaches it; a version that drops it does not."""
    ledger = recorded([out(ACME)])
    twice = replace(asked([ask(ACME), ask(ACME)]), schemas={"pay": {}, "mail": {}})
    without = replace(asked([ask(ACME)], version="v1"), schemas={"pay": {}})
    assert judged(ledger, twice, control=without).decision is Decision.PASS
    within = replace(without, guarded=frozenset({"pay"}))
    assert judged(ledger, twice, control=within).decision is Decision.BLOCK
    assert judged(ledger, twice).decision is Decision.BLOCK
    header = msgspec.structs.replace(ledger.header, versions={"v2": "desk"})
    assert judged(replace(ledger, header=header), twice).decision is Decision.PASS


def test_d1_a_pull_request_cannot_declare_an_effect_away() -> None:
    """D1: `pay: {effect: false}` in the pull request that relabels."""
    ledger = recorded([out(ACME)])
    edited = {**DECLARED, "pay": Declaration(tool="pay", effect=False)}
    verdict = judged(ledger, asked([ask(RENAMED)]), declarations=[DECLARED, edited])
    assert verdict.decision is Decision.BLOCK
    swapped = judged(ledger, asked([ask(RENAMED)]), declarations=[edited, DECLARED])
    assert swapped.decision is Decision.BLOCK


def test_d1_a_pull_request_cannot_loosen_the_policy() -> None:
    """D1: `fail_on: []` beside the change that it would let through."""
    ledger = recorded([out(ACME)])
    loose = Policy(fail_on=frozenset())
    verdict = judged(ledger, asked([ask(RENAMED)]), policies=[loose, Policy()])
    assert verdict.decision is Decision.BLOCK


def test_d1_a_changed_rule_is_judged_under_both() -> None:
    """D1, K3: `vendor: slug` makes the relabelled call equal and every old key another one."""
    ledger = recorded([out(ACME)])
    slug = {
        **DECLARED,
        "pay": Declaration(tool="pay", identity=("vendor",), fields={"vendor": ("slug",)}),
    }
    assert judged(ledger, asked([ask(ACME)]), declarations=[DECLARED]).decision is Decision.PASS
    both = judged(ledger, asked([ask(RENAMED)]), declarations=[DECLARED, slug])
    assert both.decision is Decision.BLOCK


def test_d1_a_rule_that_stands_in_the_code_is_judged_as_if_it_were_configured() -> None:
    """D1, K3: `@effect(identity=...)` says what ``backstop.yaml`` does not."""
    code = {"pay": Declaration(tool="pay", identity=("vendor",))}
    ledger = recorded([out(ACME, declared=code)], declared=code)
    unchanged = replace(asked([ask(ACME, declared=code)]), keyed_under=code, said=code)
    silent: Mapping[str, Declaration] = {"pay": Declaration(tool="pay")}
    for stated in ({}, silent):
        assert judged(ledger, unchanged, declarations=[stated]).decision is Decision.PASS
    wider = {"pay": Declaration(tool="pay", identity=("vendor", "amount"))}
    changed = replace(unchanged, said=wider)
    for control in (Lacking.UNNAMED, replace(unchanged, version="v1")):
        verdict = judged(ledger, changed, declarations=[{}], control=control)
        assert verdict.decision is Decision.BLOCK
        assert [one.divergence.reason for one in verdict.judged] == [Reason.REKEYED]
    guarded = replace(changed, guarded=frozenset({"pay"}))
    assert judged(ledger, guarded, declarations=[{}]).decision is Decision.PASS


def test_d2_findings_in_assumed_stretches_do_not_block_but_are_no_pass() -> None:
    """D2: a rewritten prompt, answered from the old record, shows no difference: no pass."""
    ledger = recorded([out(ACME)])
    drifted = [RunReplayed(run="r1", steps_total=3, steps_assumed=3, drift="drifted")]
    silent = judged(ledger, asked([ask(ACME, assumed=True)], runs=drifted))
    assert silent.decision is Decision.INCONCLUSIVE
    found = judged(ledger, asked([ask(RENAMED, assumed=True)], runs=drifted))
    assert found.decision is Decision.INCONCLUSIVE
    assert found.counts["duplicate"] == 0
    allowed = Policy(max_assumed_steps=3)
    assert (
        judged(ledger, asked([ask(ACME, assumed=True)], runs=drifted), policies=[allowed]).decision
        is Decision.PASS
    )


def test_d2_a_finding_outside_blocks_whatever_else_is_assumed() -> None:
    """D2: BLOCK comes before INCONCLUSIVE."""
    rows = [out(ACME), out(call("mail", to="x"), step="s2")]
    runs = [RunReplayed(run="r1", steps_total=3, steps_assumed=2, drift="drifted", assumed_from=1)]
    verdict = judged(recorded(rows), asked([ask(RENAMED)], runs=runs))
    assert verdict.decision is Decision.BLOCK


def test_d3_what_the_base_does_too_is_pre_existing() -> None:
    """D3: on rows of older versions, by kind, keys and fingerprint."""
    ledger = recorded([out(ACME, v="v0")])
    control = asked([ask(RENAMED)], version="v1")
    verdict = judged(ledger, asked([ask(RENAMED)]), control=control)
    assert verdict.decision is Decision.PASS
    assert verdict.counts["pre_existing"] == 1
    strict = judged(ledger, asked([ask(RENAMED)]), control=control, subtract=False)
    assert strict.decision is Decision.BLOCK


def test_d3_pre_existing_findings_are_subtracted_by_count() -> None:
    """D3: the base does it once, the candidate twice: one is new."""
    rows = [out(ACME, v="v0", guarded=False), out(ACME.but(vendor="globex"), v="v0")]
    control = asked([ask(ACME), ask(ACME), ask(ACME.but(vendor="globex"))], version="v1")
    candidate = asked(
        [ask(ACME), ask(ACME), ask(ACME), ask(ACME.but(vendor="globex"))], version="v2"
    )
    verdict = judged(recorded(rows), candidate, control=control)
    assert verdict.counts["pre_existing"] == 1
    assert verdict.why == ("1 DUPLICATE",)


def test_d3_a_base_that_does_not_reproduce_its_own_rows_cannot_be_trusted() -> None:
    """D3, W18: the replay is at fault there, not the pull request."""
    ledger = recorded([out(ACME, v="v1")])
    control = asked([], version="v1")
    verdict = judged(ledger, asked([ask(ACME)]), control=control)
    assert verdict.decision is Decision.INCONCLUSIVE
    assert "does not reproduce" in verdict.why[0]


def test_d5_the_worst_agent_decides() -> None:
    """D5: BLOCK > INCONCLUSIVE > PASS."""
    order = [Decision.PASS, Decision.INCONCLUSIVE, Decision.BLOCK]
    assert [worst(order[: n + 1]) for n in range(3)] == order
    passing = judged(recorded([out(ACME)]), asked([ask(ACME)]))
    blocking = judged(recorded([out(ACME)]), asked([ask(RENAMED)]))
    both = Verdict(agents=(passing, replace(blocking, agent="other")))
    assert (both.decision, both.exit_code) == (Decision.BLOCK, 1)


def test_d5_a_new_agent_is_neutral_and_alone_no_pass() -> None:
    """D5: whatever the others are, they decide; with no other, nothing was judged."""
    passing = judged(recorded([out(ACME)]), asked([ask(ACME)]))
    blocking = judged(recorded([out(ACME)]), asked([ask(RENAMED)]))
    fresh = replace(passing, agent="fresh", neutral=True)
    for other in (passing, blocking):
        assert Verdict(agents=(fresh, other)).decision is other.decision
    assert Verdict(agents=(fresh,)).decision is Decision.INCONCLUSIVE


def test_d6_a_run_that_was_left_out_counts_against_coverage() -> None:
    """D6: a time cap says which runs it left out."""
    rows = [out(ACME), out(ACME, run="r2")]
    verdict = judged(recorded(rows), asked([ask(ACME)]))
    assert verdict.decision is Decision.INCONCLUSIVE
    assert (verdict.coverage.runs_compared, verdict.coverage.runs_total) == (1, 2)
    assert "r2" in verdict.why[0]


def test_d7_uncovered_changes_are_no_pass_in_silence() -> None:
    """D7: the pull request changes only what `pay` does inside."""
    candidate = asked([ask(ACME)], uncovered=("the body of pay changed",))
    verdict = judged(recorded([out(ACME)]), candidate)
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.why == ("not covered: the body of pay changed",)


def test_d7_without_a_base_the_verdict_says_what_was_not_looked_for() -> None:
    """D7: unless the version is the one that wrote the rows, or there is a control run."""
    ledger, candidate = recorded([out(ACME)]), asked([ask(ACME)])
    (note,) = judged(ledger, candidate).notes
    assert "--base" in note
    assert judged(ledger, candidate).decision is Decision.PASS
    assert judged(ledger, candidate, control=asked([ask(ACME)], version="v1")).notes == ()
    (writer,) = {row.v for row in ledger.history.rows}
    assert judged(ledger, asked([ask(ACME)], version=writer)).notes == ()
    assert judged(ledger, replace(candidate, replayed=None)).notes == ()


def test_nothing_compared_is_no_pass_unless_it_is_allowed() -> None:
    """Silent green is the worst fault (G08, G12)."""
    empty = recorded([])
    assert judged(empty, asked([], runs=[])).decision is Decision.INCONCLUSIVE
    allowed = Policy(allow_empty=True)
    assert judged(empty, asked([], runs=[]), policies=[allowed]).decision is Decision.PASS


def test_an_unreplayable_run_is_no_pass_and_nothing_in_it_is_called_missing() -> None:
    """A fault in the replay is not the version's."""
    runs = [RunReplayed(run="r1", not_replayable="the agent raised in s1")]
    verdict = judged(recorded([out(ACME)]), asked([], runs=runs))
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.counts["missing"] == 0
    found = judged(recorded([out(ACME)]), asked([ask(RENAMED)], runs=runs))
    assert found.decision is Decision.BLOCK


def _handed(intent: Intent) -> Intent:
    return msgspec.structs.replace(intent, replay=Pass.HANDOVER)


def test_s2_what_only_the_handover_shows_is_found() -> None:
    """S2: v1 writes `state.poId`, N reads `state.po_id`: the handover orders again."""
    rows = [out(ACME, step="s0", guarded=False), out(call("mail", to="x"), step="s1")]
    ledger = recorded(rows, still_open=frozenset({"r1"}))
    full = [ask(ACME, step="s0"), ask(call("mail", to="x"), step="s1")]
    again = [*map(_handed, full), _handed(ask(ACME, step="s1"))]
    assert judged(ledger, asked([*full, *map(_handed, full)])).decision is Decision.PASS
    verdict = judged(ledger, asked([*full, *again]))
    assert verdict.decision is Decision.BLOCK
    assert [one.divergence.handover for one in verdict.judged] == [True]


def test_s2_a_finding_that_both_replays_show_is_one_finding() -> None:
    """S2: counts come from the full replay."""
    ledger = recorded([out(ACME)], still_open=frozenset({"r1"}))
    verdict = judged(ledger, asked([ask(RENAMED), _handed(ask(RENAMED))]))
    assert verdict.counts["duplicate"] == 1
    assert not verdict.judged[0].divergence.handover


def test_in_doubt_rows_are_counted_apart() -> None:
    """G2: they may be out."""
    verdict = judged(recorded([out(ACME, outcome=Outcome.IN_DOUBT)]), asked([ask(ACME)]))
    assert (verdict.counts["match"], verdict.counts["in_doubt"]) == (1, 1)
    assert verdict.ledger.effects == 0
