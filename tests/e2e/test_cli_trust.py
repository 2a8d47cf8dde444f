"""``backstop effects list`` and ``trust``: what a person sees of a break, and says of it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from backstop.cli.app import app
from backstop.core.canon import CANON_VERSION
from backstop.core.effectgate import Place, Precondition, Reach
from backstop.core.effecttrust import Act, Ruled, Trust
from backstop.core.events import FORMAT, EffectClaimed, EffectCommitted, Header
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.meshports import MeshStore
from backstop.ports import Claim, Held
from backstop.wiring.stores import open_store

KEY = "4f2a91bc03de" + "0" * 52


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with one effect that a recovery could not take back."""
    url = f"sqlite:///{tmp_path}/guard.db"
    header = Header(format=FORMAT, agent="clerk", canon=CANON_VERSION, guarded=True)
    store = open_store(url, header=header)
    place = Place(run="r1", step="desk/publish\x1b[2J.0")
    intent = EffectClaimed(
        run="r1",
        at="",
        step="s0",
        tool="publish",
        key=KEY,
        fingerprint="f",
        args=msgspec.Raw(b'{"to":"everybody"}'),
    )
    claim = store.claim(intent, Precondition(place=place, epoch=0))
    assert isinstance(claim, Claim)
    store.settle(EffectCommitted(run="r1", at="", key=KEY), claim=claim)
    found = TrustBreak(
        id="b", seq=9, epoch=0, detector="age", reason="stale", selector=Steps(steps=("h",))
    )
    store.break_trust(found, run="r1", reach=[Reach(run="r1", everything=True)])
    return url


def escalates(url: str) -> MeshStore:
    header = Header(format=FORMAT, agent="clerk", canon=CANON_VERSION, guarded=True)
    store = open_store(url, header=header)
    lease = store.lease("r1", "worker", lease_s=30)
    assert not isinstance(lease, Held)
    store.rule([Ruled(key=KEY, act=Act.ESCALATE, note="no undo is declared")], lease=lease)
    return store


def says(url: str, *words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["effects", *words, "--store", url, "--agent", "clerk"])
    assert done.exit_code == code, done.output
    return done.output


def test_an_effect_that_is_suspect_is_listed_with_what_comes_next(url: str) -> None:
    listed = says(url, "list")
    assert "TRUST BROKE IN 1 effect" in listed
    assert "4f2a91bc03de  publish  SUSPECT" in listed
    assert '{"to":"everybody"}' in listed
    assert "the recovery of its run" in listed
    assert "\x1b" not in listed
    assert "no effect waits for a decision" in listed
    assert "TRUST BROKE" not in says(url, "list", "--in-doubt")


def test_an_escalated_effect_says_why_and_what_to_type(url: str) -> None:
    escalates(url)
    listed = says(url, "list")
    assert "why    no undo is declared" in listed
    assert f"backstop effects trust 4f2a91bc03de --store {url} --agent clerk --keep" in listed
    (told,) = json.loads(says(url, "list", "--format", "json"))["distrusted"]
    assert (told["key"], told["trust"], told["note"]) == (KEY, "ESCALATED", "no undo is declared")


@pytest.mark.parametrize(
    ("word", "after", "told"),
    [
        ("--keep", Trust.REAFFIRMED, "stays, by person:ann"),
        ("--taken-back", Trust.COMPENSATED, "was taken back, and may be made anew, by person:ann"),
    ],
)
def test_a_person_says_what_becomes_of_it(url: str, word: str, after: Trust, told: str) -> None:
    store = escalates(url)
    assert told in says(url, "trust", "4f2a91", word, "--by", "ann")
    (effect,) = store.out()
    assert (effect.trust, effect.gated.note) == (after, "person:ann")
    assert "TRUST BROKE" not in says(url, "list")
    says(url, "trust", "4f2a91", "--keep", "--by", "bob", code=1)


def test_one_thing_is_said_of_an_effect_that_is_named_well_enough(url: str) -> None:
    says(url, "trust", "4f2a91", code=1)
    says(url, "trust", "4f2a91", "--keep", "--taken-back", code=1)
    says(url, "trust", "4f2", "--keep", code=1)
