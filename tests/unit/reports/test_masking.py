"""A verdict's document without values, and the verdict that can be read back from it."""

from __future__ import annotations

import json

import msgspec
import pytest

from backstop.core.literal import literal
from backstop.core.verdict import Verdict
from backstop.reports.context import CommentContext
from backstop.reports.document import VerdictFault, digest_of, document, read
from backstop.reports.form import VerdictDocument
from backstop.reports.masking import HIDDEN, OF, masked
from backstop.reports.reading import verdict_of
from backstop.reports.summary import render_summary
from tests.verdicts import (
    ACCEPTED,
    ATTACKED,
    BLOCKED,
    EMPTY,
    INCONCLUSIVE,
    PASSED,
    RELABELLED,
    agent_verdict,
)


def written(verdict: Verdict) -> bytes:
    return literal(masked(document(verdict, timing_ms={}))).encode()


def read_back(verdict: Verdict) -> VerdictDocument:
    return read(written(verdict), name="verdict.json")


def test_names_of_arguments_stay_and_their_values_go() -> None:
    """G24: the field is named, what stood in it is not."""
    told = json.loads(written(BLOCKED))
    assert "acme-corp" in json.dumps(document(BLOCKED, timing_ms={}), default=str)
    assert "acme-corp" not in json.dumps(told)
    args = told["agents"][0]["divergences"][0]["recorded"]["args"]
    assert args == {"vendor_id": HIDDEN, "amount": HIDDEN}


def test_a_secret_in_a_reason_goes_whole() -> None:
    """G25: neither its end nor an address is left."""
    said = "key ghp_0123456789abcdefghijABCDEFGHIJ012345 of eva@example.org"
    told = written(Verdict(agents=(agent_verdict(RELABELLED, why=(said,)),))).decode()
    assert "012345" not in told
    assert "example.org" not in told


def test_a_masked_document_is_read_as_any_other_and_names_what_it_was() -> None:
    told = json.loads(written(BLOCKED))
    assert told[OF] == digest_of(BLOCKED)
    assert read_back(BLOCKED).digest == told["digest"] != told[OF]


@pytest.mark.parametrize("verdict", [BLOCKED, INCONCLUSIVE, PASSED, ATTACKED, EMPTY])
def test_a_verdict_that_is_read_back_is_told_alike(verdict: Verdict) -> None:
    """Its summary is that of the verdict itself, but for what only values could tell."""
    back = verdict_of(read_back(verdict), name="verdict.json")
    assert back.decision is verdict.decision
    for one, other in zip(back.agents, verdict.agents, strict=True):
        assert (one.ledger, one.counts) == (other.ledger, other.counts)
        assert len(one.judged) == len(other.judged)
    context = CommentContext(config_id="x")
    first, second = (render_summary(each, context).splitlines() for each in (back, verdict))
    assert first[:3] == second[:3]


def test_what_a_change_accepts_itself_is_read_back_as_a_note() -> None:
    back = verdict_of(read_back(ACCEPTED), name="verdict.json")
    assert any("accepts findings itself" in note for note in back.agents[0].notes)


def test_words_that_no_verdict_has_are_refused() -> None:
    told = read_back(BLOCKED)
    odd = msgspec.structs.replace(told, decision="PASS")
    with pytest.raises(VerdictFault, match="its agents come to BLOCK"):
        verdict_of(odd, name="verdict.json")
    agent = msgspec.structs.replace(told.agents[0], decision="FINE")
    with pytest.raises(VerdictFault, match="FINE"):
        verdict_of(msgspec.structs.replace(told, agents=[agent]), name="verdict.json")
