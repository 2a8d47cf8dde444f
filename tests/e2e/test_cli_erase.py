"""``backstop ledger erase``: a person is taken out of a file, and of a real store."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from backstop.adapters.files import write_atomic
from backstop.core import ledgerfile
from backstop.core.erasure import runs_erased
from backstop.core.events import EffectClaimed
from backstop.ports import Conflict, Recorded
from tests.dsl import scenario
from tests.e2e.command import backstop, in_a_process, refused
from tests.e2e.stored import told

ROOT = Path(__file__).parents[2]
SPECIMEN = ROOT / "ledgers" / "vendor-onboarding.jsonl"
STORY = """
agent desk
tool mail identity to
tool look reads
run r1
step s1
model mail
read look{who: Ana} -> {found: true}
commit mail{to: ana@example.org} -> {id: 7}
flop mail{to: bob@example.org}
commit mail{to: bob@example.org} -> {id: 8}
advance
run r2
step s1
doubt mail{to: ana@example.org}
resolve reopened mail{to: ana@example.org}
commit mail{to: ana@example.org} -> {id: 9}
advance
"""
HIDING = """
agent desk
tool mail identity to fields to=redact
run r1
step s1
commit mail{to: hmac:v1:%s} -> {id: 7}
advance
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "l.jsonl"
    path.write_bytes(scenario(STORY).sealed())
    return path


def test_a_person_is_taken_out_of_a_file_and_it_still_holds(ledger: Path) -> None:
    ledger.chmod(0o600)
    ran = backstop("ledger", "erase", ledger, "--subject", "ANA@example.org")
    assert (ran.code, ran.err) == (0, "")
    assert "erased 7 rows in 2 runs (r1, r2), which cannot be replayed any more" in ran.out
    assert "ana" not in ran.out.lower()
    assert b"ana@" not in ledger.read_bytes()
    assert b"bob@example.org" in ledger.read_bytes()
    assert backstop("ledger", "verify", ledger).code == 0
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600
    assert [path.name for path in ledger.parent.iterdir()] == ["l.jsonl"]


def test_what_stays_still_compares_by_key(ledger: Path, tmp_path: Path) -> None:
    before = tmp_path / "before.jsonl"
    before.write_bytes(ledger.read_bytes())
    backstop("ledger", "erase", ledger, "--subject", "ana@example.org")
    ran = backstop("diff", before, ledger, "--format", "json")
    (agent,) = json.loads(ran.out)["agents"]
    assert ran.code == 0
    assert (agent["counts"]["match"], agent["divergences"]) == (3, [])


OTHER = STORY.replace("ana@example.org", "ANA@example.org")


@pytest.mark.parametrize("declared", [" identity to", ""], ids=["identity", "undeclared"])
@pytest.mark.parametrize("erased_is_baseline", [True, False])
def test_what_no_key_matches_is_no_pass_and_no_finding(
    declared: str, tmp_path: Path, *, erased_is_baseline: bool
) -> None:
    """Nobody can say whether the erased call and the new one are the same work."""
    erased, other = tmp_path / "erased.jsonl", tmp_path / "other.jsonl"
    erased.write_bytes(scenario(STORY.replace(" identity to", declared)).sealed())
    other.write_bytes(scenario(OTHER.replace(" identity to", declared)).sealed())
    backstop("ledger", "erase", erased, "--subject", "ana@example.org")
    sides = (erased, other) if erased_is_baseline else (other, erased)
    ran = backstop("diff", *sides, "--format", "json")
    (agent,) = json.loads(ran.out)["agents"]
    assert (ran.code, agent["decision"], agent["counts"]["match"]) == (3, "INCONCLUSIVE", 1)
    assert {one["kind"] for one in agent["divergences"]} <= {"EXTRA", "MISSING"}
    assert "its arguments were erased" in ran.out


def test_what_is_keyed_anew_cannot_be_where_it_was_erased(ledger: Path, tmp_path: Path) -> None:
    before = tmp_path / "before.jsonl"
    before.write_bytes(ledger.read_bytes())
    backstop("ledger", "erase", ledger, "--subject", "ana@example.org")
    config = tmp_path / "b.yaml"
    config.write_text(
        "version: 1\nagents: {desk: {tools: {mail: {identity: [to], fields: {to: email}}}}}\n",
        encoding="utf-8",
    )
    ran = backstop("diff", before, ledger, "--config", config, "--format", "json")
    assert ran.code == 3
    assert "its arguments were erased" in ran.out


def test_a_compressed_ledger_stays_compressed(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl.zst"
    write_atomic(path, scenario(STORY).sealed())
    assert backstop("ledger", "erase", path, "--subject", "ana@example.org").code == 0
    assert path.read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
    assert backstop("ledger", "verify", path).code == 0


def test_where_nothing_tells_of_the_subject_the_file_is_left_alone(ledger: Path) -> None:
    before = ledger.stat().st_mtime_ns
    ran = backstop("ledger", "erase", ledger, "--subject", "eve")
    assert "nothing tells of the subject, and nothing was changed" in ran.out
    assert ledger.stat().st_mtime_ns == before
    told_of = backstop("ledger", "erase", ledger, "--subject", "r1").out
    assert "name the subject where keys and repeats are told apart" in told_of


def test_a_field_narrows_what_counts(ledger: Path) -> None:
    ran = backstop("ledger", "erase", ledger, "--subject", "ana", "--field", "who")
    assert "erased 1 row in 1 run (r1)" in ran.out
    assert b"ana@example.org" in ledger.read_bytes()


def test_a_ledger_that_does_not_hold_is_never_sealed_anew(ledger: Path) -> None:
    forged = ledger.read_bytes().replace(b"bob@", b"eve@")
    ledger.write_bytes(forged)
    refused("ledger-tampered", "ledger", "erase", ledger, "--subject", "ana@example.org")
    assert ledger.read_bytes() == forged


def test_what_cannot_be_erased_is_one_line(ledger: Path, tmp_path: Path) -> None:
    refused("usage", "ledger", "erase", ledger, "--subject", " ")
    refused("ledger-missing", "ledger", "erase", tmp_path / "none.jsonl", "--subject", "ana")
    ledger.write_bytes(scenario(HIDING % ("0" * 64)).sealed())
    message = refused("redaction-key", "ledger", "erase", ledger, "--subject", "ana@example.org")
    assert "ana" not in message


def test_a_token_is_found_with_the_key(tmp_path: Path) -> None:
    from backstop.core.redaction import key_from, token

    secret = "a secret of the desk"  # noqa: S105 - of nobody
    made = token("ana@example.org", ("redact",), key_from(secret)).removeprefix("hmac:v1:")
    path = tmp_path / "l.jsonl"
    path.write_bytes(scenario(HIDING % made).sealed())
    command = ("ledger", "erase", path, "--subject", "ana@example.org")
    ran = in_a_process(*command, BACKSTOP_REDACTION_KEY=secret)
    assert (ran.code, ran.err) == (0, "")
    assert "erased 2 rows in 1 run (r1)" in ran.out
    assert made.encode() not in path.read_bytes()


def test_a_person_is_taken_out_of_a_store_and_nothing_goes_out_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    store = told(url, STORY)
    claims = [event for event in store.read() if isinstance(event, EffectClaimed)]
    command = ("ledger", "erase", url, "--subject", "ana@example.org", "--agent", "desk")
    ran = backstop(*command)
    assert (ran.code, ran.err) == (0, "")
    assert "erased 7 rows in 2 runs (r1, r2)" in ran.out
    left = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"ana@" not in left
    assert b"bob@example.org" in left
    # What was committed answers as ever, with nothing to tell.
    answer = store.claim(claims[0])
    assert isinstance(answer, Recorded)
    assert bytes(answer.result) == b'{"backstop":"erased"}'
    out = tmp_path / "l.jsonl"
    assert backstop("ledger", "pull", url, "--out", out, "--agent", "desk").code == 0
    assert runs_erased(ledgerfile.read(out.read_bytes(), name="l").events) == {"r1": 2, "r2": 3}
    assert not isinstance(answer, Conflict)
    assert "nothing tells of the subject" in backstop(*command).out


def test_the_gate_says_which_runs_cannot_be_replayed_any_more(tmp_path: Path) -> None:
    path = tmp_path / "vendor-onboarding.jsonl"
    path.write_bytes(SPECIMEN.read_bytes())
    ran = backstop("ledger", "erase", path, "--subject", "acme-corp")
    assert "in 1 run (" in ran.out
    run = ran.out.split("in 1 run (")[1].split(")")[0]
    config = tmp_path / "backstop.yaml"
    text = (ROOT / "backstop.yaml").read_text(encoding="utf-8")
    text = text.replace("path: examples", f"path: {ROOT}/examples")
    config.write_text(text.replace("ledgers/vendor-onboarding.jsonl", str(path)), encoding="utf-8")
    gate = ("gate", "--config", config, "--agent", "vendor-onboarding", "--format", "json")
    ran = backstop(*gate, "--candidate", ROOT / "examples" / "vendor_onboarding" / "v1")
    (agent,) = json.loads(ran.out)["agents"]
    assert (ran.code, agent["decision"]) == (3, "INCONCLUSIVE")
    (told_why,) = agent["coverage"]["not_replayable"]
    assert run in json.dumps(told_why)
    assert "of its rows were erased" in json.dumps(told_why)
