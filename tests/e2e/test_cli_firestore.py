"""``backstop effects`` and ``backstop ledger pull`` on the shared store, on its emulator."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from backstop.core import ledgerfile
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


def test_what_cannot_be_erased_there_says_so(url: str) -> None:
    told_and_killed(url, STORY, FIRESTORE_EMULATOR_HOST=firestore())
    ran = emulated("ledger", "erase", url, "--subject", "ana")
    assert ran.code == 2
    assert ran.err.startswith("error[erase-store]: ")
