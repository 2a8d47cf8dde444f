"""``backstop effects`` and ``backstop ledger pull`` on the shared store, on its emulator."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from backstop.adapters.firestore import FirestoreStore, Options
from backstop.adapters.firestore.messages import Range
from backstop.clock import SystemClock
from backstop.core import ledgerfile
from backstop.core.erasure import ERASED, Eraser, runs_erased, subject
from backstop.core.events import EffectClaimed, EffectCommitted
from backstop.ports import Claim, Recorded
from tests.dsl import scenario
from tests.e2e.command import Ran, backstop, in_a_process
from tests.e2e.stored import pulled_and_killed, told_and_killed
from tests.emulators import firestore, fresh_name

pytestmark = pytest.mark.emulator

STORY = """
agent desk
tool pay identity ref
run r1
step s1
commit pay{ref: 1} -> {ok: true}
doubt pay{ref: 2}
claim pay{ref: 4}
run r2
step s1
commit pay{ref: 5} -> {ok: true}
advance
close complete
"""


@pytest.fixture
def url() -> str:
    return f"firestore://p/(default)/{fresh_name()}"


def emulated(*arguments: str | Path) -> Ran:
    return in_a_process(*arguments, "--agent", "desk", FIRESTORE_EMULATOR_HOST=firestore())


def test_effects_are_listed_and_decided(url: str) -> None:
    told_and_killed(url, STORY, FIRESTORE_EMULATOR_HOST=firestore())
    told = json.loads(emulated("effects", "list", "--store", url, "--format", "json").out)
    phases = {one["args"]["ref"]: (one["phase"], one["owner_is"]) for one in told["effects"]}
    assert phases == {2: ("in doubt", "gone"), 4: ("executing", "gone")}
    for one in told["effects"]:
        key = one["key"][:12]
        ran = emulated("effects", "resolve", key, "--failed", "--by", "ana", "--store", url)
        assert (ran.code, ran.err) == (0, "")
    assert "no effect waits" in emulated("effects", "list", "--store", url).out


def test_a_pull_that_was_killed_is_taken_up_again_with_the_same_digest(
    url: str, tmp_path: Path
) -> None:
    host = firestore()
    told_and_killed(url, STORY, FIRESTORE_EMULATOR_HOST=host)
    out, fresh = tmp_path / "l.jsonl", tmp_path / "fresh.jsonl"
    pulled_and_killed(url, out, 5, FIRESTORE_EMULATOR_HOST=host)
    later = "agent desk\ntool pay identity ref\nrun r3\n"
    told_and_killed(url, later, FIRESTORE_EMULATOR_HOST=host)
    ran = emulated("ledger", "pull", url, "--out", out)
    assert (ran.code, ran.err) == (0, "")
    at = re.search(r"pulled as of (\S+), taken up again\.", ran.out)
    assert at is not None
    assert emulated("ledger", "pull", url, "--out", fresh, "--at", at[1]).code == 0
    assert out.read_bytes() == fresh.read_bytes()
    pulled = ledgerfile.read(out.read_bytes(), name="l")
    assert {event.run for event in pulled.events} == {"r1", "r2"}
    assert backstop("ledger", "stats", out).code == 0


def test_a_person_is_taken_out_and_nothing_goes_out_again(url: str, tmp_path: Path) -> None:
    host = firestore()
    story = STORY.replace("{ok: true}", "{to: ana@example.org}")
    told_and_killed(url, story, FIRESTORE_EMULATOR_HOST=host)
    before = SystemClock().now().isoformat()
    ran = emulated("ledger", "erase", url, "--subject", "ana@example.org")
    assert (ran.code, ran.err) == (0, "")
    assert "erased 2 rows in 2 runs (r1, r2)" in ran.out
    assert "nothing tells of" in emulated("ledger", "erase", url, "--subject", "ana").out
    # As of an instant before the erasure there is what was there, less what was erased.
    out = tmp_path / "l.jsonl"
    assert emulated("ledger", "pull", url, "--out", out, "--at", before).code == 0
    pulled = ledgerfile.read(out.read_bytes(), name="l")
    assert len(pulled.events) == len(scenario(story).events)
    assert runs_erased(pulled.events) == {"r1": 1, "r2": 1}


def test_what_is_under_way_is_settled_after_an_erasure_and_long_lines_go_whole() -> None:
    told = scenario("agent desk\ntool pay identity ref\nrun r1\n")
    name = fresh_name()

    def opened() -> FirestoreStore:
        return FirestoreStore(
            project="p",
            database="(default)",
            collection=name,
            agent="desk",
            header=told.header,
            clock=SystemClock(),
            emulator=firestore(),
            options=Options(patience_s=30),
        )

    store, other = opened(), opened()
    for event in told.events:
        store.append(event)
    long = msgspec.Raw(b'{"note":"ana","pad":"' + b"x" * 1_000_000 + b'"}')
    intent = EffectClaimed(
        run="r1", at="", step="s0", tool="pay", key="ab" * 32, fingerprint="f", args=long
    )
    claim = store.claim(intent)
    assert isinstance(claim, Claim)
    other.rewrite(Eraser(subject("ana", (), key=None)))
    store.settle(EffectCommitted(run="r1", at="", key=claim.key, result=long), claim=claim)
    other.rewrite(Eraser(subject("ana", (), key=None)))
    ledger = other._keeper.effects.rpartition("/")[0]  # noqa: SLF001 - for what is left there
    assert list(other._db.query(Range(collection=f"{ledger}/chunks"))) == []  # noqa: SLF001
    assert other.claim(intent) == Recorded(result=ERASED)
    for one in (store, other):
        one.close()
