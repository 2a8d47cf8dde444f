"""A ledger read as a stream is the ledger read at once, and is refused for the same reasons."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from backstop.cli.diffing import candidate_of, ledger_of
from backstop.core import intentsfile
from backstop.core.canon import CANON_VERSION
from backstop.core.events import EffectClaimed
from backstop.core.intents import INTENTS_FORMAT, IntentsHeader, RunReplayed
from backstop.core.sealing import seal_lines
from backstop.core.verdict import Policy
from backstop.errors import LedgerError
from backstop.gate.diff import diff
from backstop.gate.judge import Recorded
from tests.dsl import scenario

ROOT = Path(__file__).parents[3]
SPECIMEN = ROOT / "ledgers/vendor-onboarding.jsonl"


def test_the_rows_are_the_same() -> None:
    at_once, streamed = (ledger_of(SPECIMEN, agent=None, large=size) for size in (1 << 30, 0))
    assert streamed.header == at_once.header
    assert streamed.facts == at_once.facts
    rows = [msgspec.json.encode(known.history.rows) for known in (streamed, at_once)]
    assert rows[0] == rows[1]
    assert streamed.history.open == at_once.history.open


def test_a_stream_matches_itself() -> None:
    known = ledger_of(SPECIMEN, agent="vendor-onboarding", large=0)
    asked = candidate_of(SPECIMEN, known.header, large=0)
    assert isinstance(asked, Recorded)
    found = diff(known, asked, policy=Policy())
    assert (found.counts["match"], found.judged) == (42, ())


def test_large_intents_are_read_as_intents(tmp_path: Path) -> None:
    known = ledger_of(SPECIMEN, agent=None)
    header = IntentsHeader(format=INTENTS_FORMAT, agent=known.header.agent, canon=CANON_VERSION)
    path = tmp_path / "intents.jsonl"
    path.write_bytes(intentsfile.write(header, [RunReplayed(run="acme-2026")]))
    assert isinstance(candidate_of(path, known.header, large=0), intentsfile.Intents)


@pytest.mark.parametrize("large", [0, 1 << 30])
def test_a_key_that_its_arguments_do_not_make_is_refused_by_its_line(
    tmp_path: Path, large: int
) -> None:
    told = scenario("tool pay identity vendor\nrun r1\nstep s1\ncommit pay{vendor: a} -> ok\n")
    forged = [
        msgspec.structs.replace(event, key="0" * 64) if hasattr(event, "key") else event
        for event in told.events
    ]
    path = tmp_path / "forged.jsonl"
    path.write_bytes(b"".join(seal_lines(told.header, forged)))
    line = 2 + next(i for i, event in enumerate(forged) if isinstance(event, EffectClaimed))
    with pytest.raises(LedgerError, match=f"line {line}: ") as caught:
        ledger_of(path, agent=None, large=large)
    assert caught.value.slug == "ledger-key"
