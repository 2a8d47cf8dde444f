"""Two files compared without a replay."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from backstop.adapters.chat import Selection, import_chat
from backstop.core import intentsfile, ledgerfile
from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration, Namespace
from backstop.core.divergence import Reason
from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    Event,
    Header,
    RunClosed,
    RunOpened,
    StepStarted,
)
from backstop.core.identity import identify
from backstop.core.intents import (
    INTENTS_FORMAT,
    Answered,
    Intent,
    IntentsHeader,
    Pass,
    RunReplayed,
)
from backstop.core.intentsfile import Intents, IntentsError
from backstop.core.ledgerfile import Ledger
from backstop.core.verdict import Decision, Policy
from backstop.errors import LedgerError
from backstop.gate.diff import diff
from tests.dsl import scenario

TOOLS = {"pay": Declaration(tool="pay", identity=("invoice",))}
POLICY = Policy()


def ledger(*amounts: int | str) -> Ledger:
    """A run that pays invoice 0, 1, ... these amounts."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "pay"}]
    for invoice, amount in enumerate(amounts):
        arguments = json.dumps({"invoice": invoice, "amount": amount})
        call = {"id": "c", "function": {"name": "pay", "arguments": arguments}}
        messages += [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "paid"},
        ]
    header, events = import_chat(
        json.dumps([{"messages": messages}]).encode(),
        name="chat",
        namespace=Namespace(agent="desk"),
        declarations=TOOLS,
        selection=Selection(),
    )
    return ledgerfile.read(b"".join(ledgerfile.seal_lines(header, events)), name="ledger")


def intents(asked: Ledger, *, of: Ledger | None, schema: dict[str, Any] | None = None) -> Intents:
    """What a version asked for, as a replay of `of` would have written it down."""
    declared = {"pay": msgspec.structs.replace(TOOLS["pay"], schema=schema or {})}
    header = IntentsHeader(
        format=INTENTS_FORMAT,
        agent="desk",
        canon=CANON_VERSION,
        ledger="" if of is None else of.digest,
        declarations=declared,
    )
    rows: list[Intent | RunReplayed] = [
        Intent(
            run=event.run,
            step=event.step,
            cursor=0,
            tool=event.tool,
            # Under a schema the key is another one: it is made when the file is compared.
            key="" if schema else event.key,
            fingerprint="" if schema else event.fingerprint,
            args=event.args,
            answered=Answered.RECORDED,
        )
        for event in asked.events
        if isinstance(event, EffectClaimed)
    ]
    rows.append(RunReplayed(run="0", steps_total=1))
    return intentsfile.read(intentsfile.write(header, rows), name="intents")


def test_a_ledger_against_itself_matches() -> None:
    verdict = diff(ledger(1, 2), ledger(1, 2), policy=POLICY)
    assert (verdict.decision, verdict.counts["match"]) == (Decision.PASS, 2)


def test_a_replays_intents_are_compared_with_the_ledger_they_come_from() -> None:
    recorded = ledger(1, 2)
    verdict = diff(recorded, intents(ledger(1, 3), of=recorded), policy=POLICY)
    assert (verdict.counts["match"], verdict.counts["mutated"]) == (1, 1)
    assert verdict.coverage.steps_total == 1
    assert verdict.coverage.runs_compared == 1


def test_a_list_of_intents_speaks_for_whatever_it_is_compared_with() -> None:
    verdict = diff(ledger(1, 2), intents(ledger(1), of=None), policy=POLICY)
    assert (verdict.counts["match"], verdict.counts["missing"]) == (1, 1)


def test_the_replay_of_another_ledger_is_refused() -> None:
    with pytest.raises(IntentsError, match="replay this ledger") as caught:
        diff(ledger(1, 2), intents(ledger(1), of=ledger(1)), policy=POLICY)
    assert caught.value.slug == "intents-foreign-ledger"


def test_given_declarations_overrule_those_of_the_files() -> None:
    by_amount = {"pay": Declaration(tool="pay", identity=("amount",))}
    verdict = diff(ledger(1), ledger(2), policy=POLICY, declarations=by_amount)
    assert verdict.decision is Decision.BLOCK
    assert diff(ledger(1), ledger(2), policy=POLICY).decision is Decision.PASS


def test_a_given_declaration_keeps_the_parameters_that_the_replay_saw() -> None:
    """The configuration names identities; what a parameter's type is, the candidate knows."""
    recorded = ledger(1)
    schema = {"properties": {"amount": {"type": "string"}, "invoice": {"type": "integer"}}}
    asked = intents(ledger("1"), of=recorded, schema=schema)
    verdict = diff(recorded, asked, policy=POLICY, declarations=TOOLS)
    assert (verdict.counts["match"], verdict.counts["mutated"]) == (1, 0)
    untyped = diff(recorded, intents(ledger("1"), of=recorded), policy=POLICY, declarations=TOOLS)
    assert (untyped.counts["match"], untyped.counts["mutated"]) == (0, 1)


def replayed(
    recorded: Ledger, *rows: Intent | RunReplayed, tools: tuple[str, ...] = (), **header: Any
) -> Intents:
    """An intents file that claims to replay `recorded`."""
    said = {"ledger": recorded.digest, **header}
    top = IntentsHeader(
        format=INTENTS_FORMAT,
        agent="desk",
        canon=CANON_VERSION,
        declarations=TOOLS,
        tools=tools,
        **said,
    )
    return intentsfile.read(intentsfile.write(top, rows), name="intents")


def asked_for(recorded: Ledger) -> list[Intent]:
    """What a version asked for that does again what is recorded."""
    return intents(recorded, of=recorded).intents


WHOLE = RunReplayed(run="0", steps_total=1)


@pytest.mark.parametrize(
    ("runs", "change", "said"),
    [
        ((WHOLE, WHOLE), {}, "run '0' is told of twice"),
        ((WHOLE, RunReplayed(run="9")), {}, "run '9' was replayed, and is not in the ledger"),
        ((RunReplayed(run="0", steps_assumed=-1),), {}, "fewer than no assumed steps"),
        ((WHOLE,), {"run": "9"}, "is of run '9', which is not in the ledger"),
        ((WHOLE,), {"cursor": 7}, "has step 's0' at 7, where the ledger has it at 0"),
        ((WHOLE,), {"answered_by": -1}, "was answered by event -1"),
        ((WHOLE,), {"answered_by": 10**9}, "was answered by event 1000000000"),
        ((WHOLE,), {"replay": Pass.HANDOVER}, "handover of run '0', which is closed"),
    ],
)
def test_a_replay_that_its_ledger_contradicts_is_refused(
    runs: tuple[RunReplayed, ...], change: dict[str, Any], said: str
) -> None:
    recorded = ledger(1)
    (intent,) = asked_for(recorded)
    told = replayed(recorded, msgspec.structs.replace(intent, **change), *runs)
    with pytest.raises(IntentsError) as caught:
        diff(recorded, told, policy=POLICY)
    assert caught.value.slug == "intents-contradiction"
    assert said in str(caught.value)


TWO_RUNS = """
agent desk unguarded
tool pay identity invoice{scope}
run r1
step s0
commit pay{{invoice: 1}}
close complete
run r2
step s0
commit pay{{invoice: 2}}
intent s0 pay{{invoice: 2}}
close complete
"""


@pytest.mark.parametrize(("scope", "refused"), [("", True), (" scope agent", False)])
def test_only_a_tool_of_scope_agent_is_answered_by_another_run(
    scope: str, *, refused: bool
) -> None:
    made = scenario(TWO_RUNS.format(scope=scope))
    recorded = ledgerfile.read(made.sealed(), name="L")
    first = next(i for i, e in enumerate(recorded.events) if isinstance(e, EffectClaimed))
    header = msgspec.structs.replace(made.intents_header, ledger=recorded.digest)
    (intent,) = made.intents
    answered = msgspec.structs.replace(intent, answered_by=first)
    rows: list[Intent | RunReplayed] = [answered, *made.runs]
    told = intentsfile.read(intentsfile.write(header, rows), name="intents")
    if refused:
        with pytest.raises(IntentsError, match="was answered by a call of run 'r1'"):
            diff(recorded, told, policy=POLICY)
    else:
        assert diff(recorded, told, policy=POLICY).counts["match"] == 1


def test_d2_what_is_assumed_is_never_counted_as_compared() -> None:
    """D2: assumed findings do not block, so a file that calls nothing assumed must not pass."""
    recorded = ledger(1)
    (intent,) = asked_for(recorded)
    assumed = replayed(recorded, msgspec.structs.replace(intent, assumed=True), WHOLE)
    since = replayed(recorded, RunReplayed(run="0", steps_total=1, assumed_from=0))
    for told in (assumed, since):
        verdict = diff(recorded, told, policy=POLICY)
        assert verdict.decision is Decision.INCONCLUSIVE
        assert verdict.coverage.steps_assumed == 1


def test_runs_that_a_candidate_ledger_lacks_were_not_compared() -> None:
    """An empty ledger drops everything; that must not read as a pass with warnings."""
    one = ledgerfile.read(scenario(TWO_RUNS.format(scope="")).sealed(), name="L")
    none = ledgerfile.read(scenario("agent desk unguarded").sealed(), name="L")
    verdict = diff(one, none, policy=POLICY)
    assert verdict.decision is Decision.INCONCLUSIVE
    assert (verdict.coverage.runs_compared, verdict.coverage.runs_total) == (0, 2)
    assert verdict.counts["missing"] == 2


def test_a_list_of_intents_is_believed_where_it_says_that_it_falls_short() -> None:
    recorded = ledger(1)
    told = replayed(
        recorded,
        *asked_for(recorded),
        RunReplayed(run="0", not_replayable="it crashed"),
        ledger="",
        uncovered=("pay",),
    )
    verdict = diff(recorded, told, policy=POLICY)
    assert verdict.decision is Decision.INCONCLUSIVE
    assert dict(verdict.coverage.not_replayable) == {"0": "it crashed"}
    assert verdict.coverage.uncovered == ("pay",)


def test_a_ledger_of_another_owner_is_refused() -> None:
    ours = scenario(TWO_RUNS.format(scope=""))
    theirs = replace(ours, header=msgspec.structs.replace(ours.header, tenant="other"), events=[])
    with pytest.raises(LedgerError, match="other owners have other keys") as caught:
        diff(
            ledgerfile.read(ours.sealed(), name="ours"),
            ledgerfile.read(theirs.sealed(), name="theirs"),
            policy=POLICY,
        )
    assert caught.value.slug == "ledger-foreign-agent"


def test_g6_a_replays_file_tells_which_tools_the_candidate_has() -> None:
    """G6: the diff of a replay says of a renamed tool what the gate says."""
    recorded = ledger(1)
    wire = msgspec.structs.replace(asked_for(recorded)[0], tool="wire", key="", fingerprint="")
    verdict = diff(recorded, replayed(recorded, wire, WHOLE, tools=("wire",)), policy=POLICY)
    assert [one.divergence.reason for one in verdict.judged] == [Reason.RENAMED]


READS_AND_PAYS = """
agent desk unguarded
tool look reads
tool pay identity invoice
run r1
step s0
read look{ref: 1}
commit pay{invoice: 1}
close complete
"""


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (Declaration(tool="pay", effect=False), "pay: 1 calls were recorded as effects"),
        (Declaration(tool="look"), "look: its calls were recorded as reads"),
    ],
)
def test_d1_calls_that_turn_from_effect_to_read_or_back_were_not_compared(
    declared: Declaration, said: str
) -> None:
    """D1: declaring an effect away, or in, leaves nothing on one side to compare it with."""
    recorded = ledgerfile.read(scenario(READS_AND_PAYS).sealed(), name="L")
    same = diff(recorded, recorded, policy=POLICY)
    assert same.decision is Decision.PASS
    verdict = diff(recorded, recorded, policy=POLICY, declarations={declared.tool: declared})
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.why[0].startswith(said)


BY_VENDOR = Declaration(
    tool="pay",
    identity=("vendor",),
    schema={"properties": {"vendor": {}, "amount": {"default": 1}}},
)
BY_AMOUNT = msgspec.structs.replace(BY_VENDOR, identity=("vendor", "amount"))
DEARER = msgspec.structs.replace(
    BY_AMOUNT, schema={"properties": {"vendor": {}, "amount": {"default": 2}}}
)


def written(*rows: tuple[dict[str, Any], Declaration], owner: str = "worker") -> Ledger:
    """A guarded ledger whose rows were written one after the other under these declarations."""
    place: dict[str, Any] = {"run": "r1", "at": "2026-01-05T08:00:00Z"}
    told: list[Event] = [RunOpened(**place), StepStarted(**place, step="s0", cursor=0)]
    for args, declared in rows:
        named = identify(args, declared, namespace=Namespace(agent="desk"), run="r1", step="s0")
        claimed = EffectClaimed(
            **place,
            step="s0",
            tool="pay",
            key=named.key,
            fingerprint=named.fingerprint,
            decl=declared.digest,
            args=msgspec.Raw(json.dumps(args).encode()),
            owner=owner,
        )
        told += [claimed, EffectCommitted(**place, key=named.key)]
    told.append(RunClosed(**place, status="complete"))
    header = Header(
        format=1,
        agent="desk",
        canon=CANON_VERSION,
        guarded=bool(owner),
        tools={"pay": rows[-1][1].digest},
        declarations={declared.digest: declared for _, declared in rows},
    )
    return ledgerfile.read(b"".join(ledgerfile.seal_lines(header, told)), name="L")


def test_k3_a_ledger_whose_rules_changed_half_way_is_itself() -> None:
    """K3: both sides are keyed anew, each row from the declaration that it was written under."""
    recorded = written(({"vendor": "a"}, BY_VENDOR), ({"vendor": "b"}, BY_AMOUNT))
    verdict = diff(recorded, recorded, policy=POLICY)
    assert (verdict.decision, verdict.counts["match"]) == (Decision.PASS, 2)
    assert verdict.judged == ()


def test_k2_absent_arguments_of_a_candidate_ledger_mean_what_they_meant_when_written() -> None:
    """K2: one left the amount to a default of 1, the other to a default of 2."""
    one = written(({"vendor": "a"}, BY_AMOUNT), ({"vendor": "z", "amount": 9}, DEARER), owner="")
    two = written(({"vendor": "a"}, DEARER), ({"vendor": "z", "amount": 9}, DEARER), owner="")
    assert diff(one, one, policy=POLICY).counts["match"] == 2
    for recorded, other in ((one, two), (two, one)):
        verdict = diff(recorded, other, policy=POLICY)
        assert (verdict.counts["match"], len(verdict.judged)) == (1, 1)


def test_only_what_was_committed_counts_as_asked_for_by_a_ledger() -> None:
    """G1: two ledgers are compared on what went out."""
    failed = ledgerfile.read(
        scenario(READS_AND_PAYS.replace("commit pay", "fail pay{invoice: 2}\ncommit pay")).sealed(),
        name="L",
    )
    verdict = diff(failed, failed, policy=POLICY)
    assert (verdict.counts["match"], verdict.judged) == (1, ())


def test_a_verdict_leaves_nothing_for_the_garbage_collector() -> None:
    """A cycle would hold the bytes of each ledger until the collector runs: memory and time."""
    baseline, candidate = ledger(1, 2), ledger(1, 3)
    gc.collect()
    gc.disable()
    left: list[int] = []
    try:
        for _ in range(3):
            diff(baseline, candidate, policy=POLICY)
            left.append(gc.collect())
        # What a verdict leaves it leaves each time; other threads of the process leave some too.
        assert min(left) == 0, left
        cycle: list[object] = []
        cycle.append(cycle)
        del cycle
        assert gc.collect() > 0, "the collector must be able to find a cycle"
    finally:
        gc.enable()
