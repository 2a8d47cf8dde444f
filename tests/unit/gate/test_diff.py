"""Two files compared without a replay."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from backstop.adapters.chat import Selection, import_chat
from backstop.core import intentsfile, ledgerfile
from backstop.core.canon import CANON_VERSION
from backstop.core.events import EffectClaimed
from backstop.core.identity import Declaration, Namespace
from backstop.core.intents import INTENTS_FORMAT, Answered, Intent, IntentsHeader, RunReplayed
from backstop.core.intentsfile import Intents, IntentsError
from backstop.core.ledgerfile import Ledger
from backstop.core.verdict import Decision, Policy
from backstop.gate.diff import diff

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
