"""What an intents file says of its ledger, beyond what `diff` is asked in its own tests."""

from __future__ import annotations

import msgspec

from backstop.core import intentsfile, ledgerfile
from backstop.core.events import EffectClaimed, ToolRead
from backstop.core.history import History, effect_rows
from backstop.core.intents import Intent, Pass, RunReplayed
from backstop.core.intentsfile import Intents
from backstop.gate.consistency import contradiction
from tests.dsl import scenario

STILL_OPEN = """
agent desk
tool pay identity vendor
tool look reads
run r1
step s0
read look{ref: 1}
commit pay{vendor: a}
intent s0 pay{vendor: a}
"""


def told(**change: object) -> tuple[Intents, History, dict[type, int]]:
    """The one intent of the text, changed; and where in the ledger the calls stand."""
    made = scenario(STILL_OPEN)
    recorded = ledgerfile.read(made.sealed(), name="L")
    places = {type(event): index for index, event in enumerate(recorded.events)}
    (intent,) = made.intents
    rows: list[Intent | RunReplayed] = [msgspec.structs.replace(intent, **change), *made.runs]
    data = intentsfile.write(made.intents_header, rows)
    return intentsfile.read(data, name="I"), effect_rows([recorded.events]), places


def test_the_call_of_its_own_step_may_answer() -> None:
    _, _, places = told()
    for replay in Pass:
        intents, history, _ = told(answered_by=places[EffectClaimed], replay=replay)
        assert contradiction(intents, history) is None


def test_what_is_no_effect_may_answer_too() -> None:
    """A tool that was a read when it was recorded has no row."""
    _, _, places = told()
    intents, history, _ = told(answered_by=places[ToolRead])
    assert contradiction(intents, history) is None


def test_a_handover_is_looked_at_even_where_its_own_row_answered() -> None:
    _, _, places = told()
    intents, history, _ = told(answered_by=places[EffectClaimed], replay=Pass.HANDOVER)
    history.open.clear()
    assert contradiction(intents, history) == (
        "intent 1 (pay) is of the handover of run 'r1', which is closed"
    )
