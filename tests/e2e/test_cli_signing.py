"""Signing on the command line: with which key, what, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from backstop.adapters.signing import KEY_VARIABLE
from backstop.core.events import Seal
from tests.dsl import scenario, sealed
from tests.e2e.command import backstop, in_a_process, refused
from tests.e2e.desk import LATE, LATE_SIZE, NEW, OURS, Desk, edited, lines_of, new_desk
from tests.e2e.stored import filled, told


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return new_desk(tmp_path)


def test_a_mark_without_keys_is_no_mark(desk: Desk) -> None:
    desk.put(sealed(LATE))
    said = refused("usage", "ledger", "verify", desk.ledger, "--high-water", desk.mark)
    assert "--trusted-keys" in said
    assert not desk.mark.exists()


def test_the_mark_never_takes_the_place_of_what_is_read(desk: Desk) -> None:
    whole = desk.put(sealed(LATE))
    command = ("ledger", "verify", desk.ledger, "--trusted-keys", desk.keys)
    refused("usage", *command, "--high-water", desk.ledger)
    refused("usage", *command, "--high-water", desk.keys)
    assert desk.ledger.read_bytes() == whole


def test_seal_signs_with_a_key_and_says_which(desk: Desk) -> None:
    whole = sealed(LATE)
    desk.ledger.write_bytes(b"".join(lines_of(whole)[:-1]))
    pem = OURS.file(desk.folder / "key.pem")
    ran = backstop("ledger", "seal", desk.ledger, "--key", pem)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith(f"; signed by {OURS.signing.id}\n")
    assert desk.check().code == 0
    assert lines_of(desk.ledger.read_bytes())[:-1] == lines_of(whole)[:-1]
    assert "signed, not checked" in backstop("ledger", "verify", desk.ledger).out


def test_seal_without_a_key_says_unsigned_and_seals_as_ever(desk: Desk) -> None:
    whole = sealed(LATE)
    desk.ledger.write_bytes(b"".join(lines_of(whole)[:-1]))
    assert backstop("ledger", "seal", desk.ledger).out.endswith("; unsigned\n")
    assert desk.ledger.read_bytes() == whole
    refused("ledger-sealed", "ledger", "seal", desk.ledger)


def test_a_sealed_ledger_is_signed_with_a_key_and_signed_anew_with_another(desk: Desk) -> None:
    whole = sealed(LATE)
    desk.ledger.write_bytes(whole)
    out = desk.folder / "signed.jsonl.zst"
    old, new = OURS.file(desk.folder / "old.pem"), NEW.file(desk.folder / "new.pem")
    assert backstop("ledger", "seal", desk.ledger, "--out", out, "--key", old).code == 0
    assert desk.ledger.read_bytes() == whole
    again = backstop("ledger", "seal", out, "--key", new, "--epoch", "3")
    assert again.out.endswith(f"; signed by {NEW.signing.id}\n")
    desk.keys.write_text(f"trusted {NEW.public} new\n", encoding="utf-8")
    assert backstop("ledger", "verify", out, "--trusted-keys", desk.keys).code == 0


def test_what_does_not_hold_is_never_signed(desk: Desk) -> None:
    damaged = edited(sealed(LATE))
    desk.ledger.write_bytes(damaged)
    pem = OURS.file(desk.folder / "key.pem")
    refused("ledger-tampered", "ledger", "seal", desk.ledger, "--key", pem)
    assert desk.ledger.read_bytes() == damaged


def test_a_key_that_cannot_be_used_leaves_everything_as_it_was(desk: Desk) -> None:
    opened = b"".join(lines_of(sealed(LATE))[:-1])
    desk.ledger.write_bytes(opened)
    exposed = OURS.file(desk.folder / "key.pem", mode=0o644)
    refused("key-exposed", "ledger", "seal", desk.ledger, "--key", exposed)
    refused("file-missing", "ledger", "seal", desk.ledger, "--key", desk.folder / "none.pem")
    assert desk.ledger.read_bytes() == opened


def test_the_environment_may_hold_the_key(desk: Desk) -> None:
    desk.ledger.write_bytes(sealed(LATE))
    pem = {KEY_VARIABLE: OURS.pem.decode()}
    ran = in_a_process("ledger", "seal", desk.ledger, **pem)
    assert (ran.code, f"signed by {OURS.signing.id}" in ran.out) == (0, True)
    assert desk.check().code == 0


def test_a_pulled_ledger_is_signed_and_a_later_one_goes_on_from_it(desk: Desk) -> None:
    url = f"sqlite:///{desk.folder}/s.db"
    told(url, LATE)
    pem = OURS.file(desk.folder / "key.pem")
    pull = ("ledger", "pull", url, "--out", desk.ledger, "--agent", "desk")
    assert backstop(*pull).out.endswith("; unsigned\n")
    desk.refused("ledger-unsigned")
    assert f"signed by {OURS.signing.id}" in backstop(*pull, "--key", pem).out
    assert "begins here" in desk.check_marked().out
    more = f"{LATE}run r4\nstep s1\ncommit pay{{ref: 4}} -> {{ok: true}}\nadvance\n"
    told_again(url, more)
    assert backstop(*pull, "--key", pem).code == 0
    assert f"raised from {LATE_SIZE}" in desk.check_marked().out


def test_a_pull_that_shows_a_silent_skip_is_written_and_never_signed(desk: Desk) -> None:
    url = f"sqlite:///{desk.folder}/s.db"
    told(url, "tool pay identity ref\nrun r1\nstep s1\nmodel pay\nadvance\nclose complete\n")
    pem = OURS.file(desk.folder / "key.pem")
    pull = ("ledger", "pull", url, "--out", desk.ledger, "--agent", "desk")
    refused("silent-skip", *pull, "--key", pem)
    seal = msgspec.json.decode(lines_of(desk.ledger.read_bytes())[-1], type=Seal)
    assert seal.signature is None
    desk.refused("silent-skip")


def told_again(url: str, story: str) -> None:
    """Tell the store what a story says of run r4."""
    source = scenario(story)
    filled(url, source.header, [event for event in source.events if event.run == "r4"])


def test_the_specimen_holds_and_is_said_to_be_unsigned() -> None:
    ran = backstop("ledger", "verify", "ledgers/vendor-onboarding.jsonl")
    assert (ran.code, ran.out.endswith("; unsigned\n")) == (0, True)
