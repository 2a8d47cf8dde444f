"""``backstop ledger pull`` from a real store."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from backstop.clock import SystemClock
from backstop.core import ledgerfile
from tests.e2e.command import backstop, refused
from tests.e2e.stored import pulled_and_killed, told

STORY = """
agent desk
tool pay identity ref
tool check reads
run r1
step s1
read check{ref: 7} -> {free: true}
commit pay{ref: 1} -> {ok: true}
advance
run r2
step s1
doubt pay{ref: 2}
run r1
step s2
commit pay{ref: 3} -> {ok: true}
advance
close complete
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/s.db"


def pull(url: str, out: Path, *options: str) -> tuple[str | Path, ...]:
    return ("ledger", "pull", url, "--out", out, "--agent", "desk", *options)


def test_a_pulled_ledger_holds_and_can_be_counted(url: str, tmp_path: Path) -> None:
    store = told(url, STORY)
    out = tmp_path / "l.jsonl"
    ran = backstop(*pull(url, out))
    assert (ran.code, ran.err) == (0, "")
    assert "2 side effects, 1 in doubt, 2 runs (1 open); holds, no silent skip" in ran.out
    pulled = ledgerfile.read(out.read_bytes(), name="l")
    assert [type(event) for event in pulled.events] == [type(event) for event in store.read()]
    assert pulled.header == store.header
    assert backstop("ledger", "verify", out, "--agent", "desk").code == 0
    assert "pay, in_doubt" in backstop("ledger", "stats", out).out
    assert not list(tmp_path.glob("*.part"))


def test_a_ledger_is_pulled_as_of_an_instant_whatever_came_later(url: str, tmp_path: Path) -> None:
    told(url, STORY)
    at = SystemClock().now().isoformat()
    told(url, "agent desk\ntool pay identity ref\ntool check reads\nrun r3\n")
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    assert backstop(*pull(url, first, "--at", at)).code == 0
    assert backstop(*pull(url, second, "--at", at)).code == 0
    assert first.read_bytes() == second.read_bytes()
    assert b"r3" not in first.read_bytes()
    assert "3 runs" in backstop(*pull(url, second)).out


@pytest.mark.parametrize("row", [0, 11])
def test_a_pull_that_was_killed_is_taken_up_again_for_its_own_instant(
    row: int, url: str, tmp_path: Path
) -> None:
    told(url, STORY)
    out, fresh = tmp_path / "l.jsonl", tmp_path / "fresh.jsonl"
    pulled_and_killed(url, out, row)
    told(url, "agent desk\ntool pay identity ref\ntool check reads\nrun r3\n")
    ran = backstop(*pull(url, out))
    assert (ran.code, ran.err) == (0, "")
    at = re.search(r"pulled as of (\S+), taken up again\.", ran.out)
    assert at is not None
    assert backstop(*pull(url, fresh, "--at", at[1])).code == 0
    assert out.read_bytes() == fresh.read_bytes()
    assert b"r3" not in out.read_bytes()
    assert not list(tmp_path.glob("*.part"))


DECIDED = """
agent desk
tool pay identity ref
run r1
step s1
doubt pay{ref: 1}
doubt pay{ref: 2}
doubt pay{ref: 3}
"""


def test_a_ledger_in_which_persons_decided_holds_and_compares(url: str, tmp_path: Path) -> None:
    store = told(url, DECIDED)
    words = (("--committed", '{"id": 7}'), ("--failed",), ("--retry", "--force"))
    for standing, word in zip(list(store.standings()), words, strict=True):
        resolve = ("effects", "resolve", standing.claimed.key, *word, "--reason", "looked it up")
        assert backstop(*resolve, "--store", url, "--agent", "desk").code == 0
    out = tmp_path / "l.jsonl"
    ran = backstop(*pull(url, out))
    assert (ran.code, ran.err) == (0, "")
    assert "1 side effect, 1 run (1 open); holds" in ran.out
    assert "pay, in_doubt" in backstop("ledger", "stats", out).out
    assert backstop("diff", out, out).code == 0


def test_before_the_first_event_there_is_nothing(url: str, tmp_path: Path) -> None:
    told(url, STORY)
    before = (SystemClock().now() - timedelta(days=1)).isoformat()
    assert ": pulled as of" in backstop(*pull(url, tmp_path / "l.jsonl", "--at", before)).out


def test_what_cannot_be_pulled_is_one_line(url: str, tmp_path: Path) -> None:
    told(url, STORY)
    out = tmp_path / "l.jsonl"
    refused("usage", *pull(url, out, "--at", "yesterday"))
    refused("usage", *pull(url, out, "--at", "2999-01-01T00:00:00Z"))
    refused("store-missing", *pull(f"sqlite:///{tmp_path}/none.db", out))
    refused("file-unwritable", *pull(url, tmp_path / "none" / "l.jsonl"))
    refused("store-url", *pull("memory:", out))
    assert not out.exists()
