"""A ledger without the values that its tools were called with, recorded and replayed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from backstop.core.events import EffectClaimed, EffectCommitted, ModelAnswered
from backstop.core.ledgerfile import Ledger, seal_lines, verify
from backstop.core.redaction import RedactionKey, token
from backstop.core.verdict import Decision
from backstop.errors import BackstopError
from tests.e2e.replaying import findings, replayed, verdict
from tests.e2e.test_replay_clerk import DECLARED, Office

pytestmark = pytest.mark.filterwarnings("ignore")

KEY = RedactionKey(secret=b"a secret of the office")
HIDDEN = {
    **DECLARED,
    "pay": msgspec.structs.replace(DECLARED["pay"], fields={"vendor": ("casefold", "redact")}),
    "check": msgspec.structs.replace(DECLARED["check"], fields={"po": ("redact",)}),
}
COMPUTED = ("    pass\n", '    if "vendor" in args:\n        args["vendor"] = "{vendor}"\n')


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(folder=tmp_path)


def recorded(office: Office, *, closed: bool = True) -> Ledger:
    return office.ledger(office.version("v1"), closed=closed, declared=HIDDEN, key=KEY)


def written(ledger: Ledger) -> bytes:
    return b"".join(seal_lines(ledger.header, ledger.events))


def computing(office: Office, vendor: str) -> Path:
    """A version whose code says itself whom to pay."""
    old, new = COMPUTED
    return office.version("v2", (old, new.format(vendor=vendor)))


def test_what_is_declared_never_reaches_the_ledger_and_the_tool_gets_it(office: Office) -> None:
    ledger = recorded(office)
    (claim, _) = (event for event in ledger.events if isinstance(event, EffectClaimed))
    vendor = token("acme-corp", ("casefold",), KEY)
    assert msgspec.json.decode(claim.args)["vendor"] == vendor
    answer = next(event for event in ledger.events if isinstance(event, ModelAnswered))
    assert vendor.encode() in bytes(answer.response)
    done = next(event for event in ledger.events if isinstance(event, EffectCommitted))
    # What a tool gives and keeps in the session stays as it is: it is handed on from here.
    assert bytes(done.state_delta) == b'{"paid":"acme-corp"}'
    without = [event for event in ledger.events if b"paid" not in msgspec.json.encode(event)]
    assert b"acme-corp" not in b"".join(map(msgspec.json.encode, without))
    verify([written(ledger)], name="clerk.jsonl")


def test_without_the_key_the_effect_is_refused_and_the_step_stays_open(office: Office) -> None:
    with pytest.raises(BackstopError) as caught:
        office.ledger(office.version("v1"), declared=HIDDEN)
    assert caught.value.slug == "cursor-held"
    assert "pay: a value is declared `redact`, and there is no key" in str(caught.value)
    assert "acme" not in str(caught.value)


def test_recorded_answers_lead_to_the_same_keys_without_the_key(office: Office) -> None:
    """The digests of requests agree too: what was asked with values is asked with tokens.

    S2: and so does the session that a new version is handed.
    """
    ledger = recorded(office, closed=False)
    again = office.version("v1-again", ("def before", "def  before"))
    done = replayed(ledger, again, declarations=HIDDEN)
    (run,) = done.runs
    assert (run.drift, run.steps_assumed, run.not_replayable) == ("none", 0, None)
    found = verdict(ledger, done, declarations=HIDDEN)
    assert (found.decision, found.counts["match"], findings(found)) == (Decision.PASS, 2, {})


def test_a_value_that_code_computes_compares_with_the_key(office: Office) -> None:
    ledger = recorded(office)
    same = replayed(ledger, computing(office, "ACME-Corp"), declarations=HIDDEN, key=KEY)
    assert verdict(ledger, same, declarations=HIDDEN).counts["match"] == 2
    assert all(b"ACME" not in bytes(intent.args) for intent in same.intents)


def test_another_value_that_code_computes_is_a_duplicate(office: Office) -> None:
    ledger = recorded(office)
    other = replayed(ledger, computing(office, "ACME GmbH"), declarations=HIDDEN, key=KEY)
    found = verdict(ledger, other, declarations=HIDDEN)
    assert findings(found) == {"DUPLICATE retargeted": 1}
    assert found.decision is Decision.BLOCK


def test_a_value_that_code_computes_is_no_pass_without_the_key(office: Office) -> None:
    ledger = recorded(office)
    done = replayed(ledger, computing(office, "acme-corp"), declarations=HIDDEN)
    (run,) = done.runs
    assert run.not_replayable is not None
    assert "pay is asked for with a value that cannot be compared" in run.not_replayable
    assert verdict(ledger, done, declarations=HIDDEN).decision is Decision.INCONCLUSIVE
