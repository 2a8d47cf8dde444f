"""Every way to pass another past for the one that was, on a signed ledger.

Faults 31 to 43 of the mesh's catalogue, on files: each is refused by its name, and beside each
stands what tells it from the ledger that is as it should be.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from backstop.core import ledgerfile
from backstop.core.events import Event, Header, Seal
from backstop.core.heads import (
    Envelope,
    head_bytes,
    head_of,
    open_envelope,
    open_mark,
    pre_authentication,
    write_envelope,
)
from backstop.core.sealing import encode, seal_lines
from backstop.errors import LedgerError
from backstop.wiring.signing import check_signed
from tests.dsl import scenario, sealed
from tests.e2e.command import backstop
from tests.e2e.desk import (
    EARLY,
    EARLY_SIZE,
    LATE,
    LATE_SIZE,
    NEW,
    OURS,
    REWRITTEN,
    THIEF,
    Desk,
    edited,
    lines_of,
    new_desk,
)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return new_desk(tmp_path)


@pytest.fixture
def seen(desk: Desk) -> Desk:
    """A desk whose ledger was seen: the mark is at its end."""
    desk.put(sealed(LATE))
    assert "begins here" in desk.check_marked().out
    return desk


def resealed(data: bytes, *, keep: bool) -> bytes:
    """Link and seal what the lines say now, as anybody can, with the old signature or none."""
    ledger = lines_of(data)
    header = msgspec.json.decode(ledger[0], type=Header | Seal)
    assert isinstance(header, Header)
    decoder = msgspec.json.Decoder(Event)
    events = [msgspec.structs.replace(decoder.decode(row), prev="") for row in ledger[1:-1]]
    *body, last = seal_lines(header, events)
    old = msgspec.json.decode(ledger[-1], type=Seal)
    new = msgspec.json.decode(last, type=Seal)
    signature = old.signature if keep else None
    return b"".join(body) + encode(msgspec.structs.replace(new, signature=signature)) + b"\n"


def test_31_a_signed_ledger_holds_with_and_without_a_mark(seen: Desk) -> None:
    ran = seen.check()
    assert (ran.code, ran.err) == (0, "")
    assert f"; signed by {OURS.signing.id} (ci 2026) at 2026-11-30T20:00:00+00:00" in ran.out
    again = seen.check_marked()
    assert again.code == 0
    assert "begins" not in again.out
    assert "raised" not in again.out


def test_31_a_mark_is_raised_by_what_goes_on_from_it(desk: Desk) -> None:
    desk.put(sealed(EARLY))
    first = desk.check_marked()
    assert f"{EARLY_SIZE} events, and begins here: what was before is not known" in first.out
    desk.put(sealed(LATE))
    assert f"{LATE_SIZE} events, raised from {EARLY_SIZE}" in desk.check_marked().out
    mark = open_mark(desk.mark.read_bytes(), name="mark")
    assert (mark.head.agent, mark.head.size, mark.keyid) == ("desk", LATE_SIZE, OURS.signing.id)


def test_31_runs_that_went_on_in_another_place_of_the_file_are_no_fork(desk: Desk) -> None:
    """A later pull may put new rows of one run before old ones of another."""
    desk.put(sealed(EARLY))
    assert desk.check_marked().code == 0
    story = scenario(LATE)
    own = [event for event in story.events if event.run == "r2"]
    rest = [event for event in story.events if event.run != "r2"]
    desk.put(b"".join(seal_lines(story.header, [*rest, *own])))
    assert f"raised from {EARLY_SIZE}" in desk.check_marked().out


def test_32_an_edited_line_is_refused(seen: Desk) -> None:
    seen.ledger.write_bytes(edited(seen.ledger.read_bytes()))
    seen.refused("ledger-tampered")
    seen.refused_by_mark("ledger-tampered")


def test_33_lines_that_changed_places_are_refused(seen: Desk) -> None:
    rows = lines_of(seen.ledger.read_bytes())
    rows[2], rows[3] = rows[3], rows[2]
    seen.ledger.write_bytes(b"".join(rows))
    seen.refused("ledger-reordered")


def test_34_a_line_that_was_taken_out_is_missed(seen: Desk) -> None:
    rows = lines_of(seen.ledger.read_bytes())
    seen.ledger.write_bytes(b"".join(rows[:3] + rows[4:]))
    seen.refused("ledger-truncated")


def test_34_a_line_of_another_ledger_is_refused(seen: Desk) -> None:
    strange = lines_of(sealed(LATE.replace("run r", "run x")))[1]
    rows = lines_of(seen.ledger.read_bytes())
    seen.ledger.write_bytes(b"".join([*rows[:3], strange, *rows[3:]]))
    seen.refused("ledger-spliced")


def test_35_a_tail_that_was_cut_off_is_missed(seen: Desk) -> None:
    rows = lines_of(seen.ledger.read_bytes())
    seen.ledger.write_bytes(b"".join([*rows[:-3], rows[-1]]))
    seen.refused("ledger-truncated")


def test_35_a_tail_that_was_cut_off_and_sealed_over_is_refused_for_its_signature(
    seen: Desk,
) -> None:
    shorter = sealed(EARLY)
    signature = msgspec.json.decode(lines_of(seen.ledger.read_bytes())[-1], type=Seal).signature
    seal = msgspec.json.decode(lines_of(shorter)[-1], type=Seal)
    forged = encode(msgspec.structs.replace(seal, signature=signature)) + b"\n"
    seen.ledger.write_bytes(b"".join([*lines_of(shorter)[:-1], forged]))
    assert f"of {LATE_SIZE} events; this one, of {EARLY_SIZE}" in seen.refused("head-mismatch")
    assert backstop("ledger", "verify", seen.ledger).code == 0


def test_36_an_older_ledger_with_its_own_good_signature_is_refused_by_the_mark(seen: Desk) -> None:
    seen.put(sealed(EARLY))
    assert seen.check().code == 0  # the file alone cannot tell
    said = seen.refused_by_mark("head-rollback")
    assert f"{EARLY_SIZE} events, where {LATE_SIZE} were seen before" in said
    seen.put(sealed(LATE))
    assert seen.check_marked().code == 0


def test_36_a_ledger_from_before_a_break_of_trust_is_refused_by_the_mark(seen: Desk) -> None:
    seen.put(sealed(LATE), epoch=2)
    assert "raised" in seen.check_marked().out
    seen.put(sealed(LATE), epoch=1)
    assert "epoch 1, before epoch 2" in seen.refused_by_mark("head-rollback")


@pytest.mark.parametrize(
    ("keep", "slug"), [(True, "head-mismatch"), (False, "ledger-unsigned")], ids=str
)
def test_37_an_edit_that_was_sealed_again_without_the_key_is_refused(
    seen: Desk, keep: bool, slug: str
) -> None:
    whole = seen.ledger.read_bytes()
    seen.ledger.write_bytes(resealed(edited(whole), keep=keep))
    assert backstop("ledger", "verify", seen.ledger).code == 0  # the seal alone cannot tell
    seen.refused(slug)
    seen.refused_by_mark(slug)
    seen.ledger.write_bytes(resealed(whole, keep=True))
    assert seen.ledger.read_bytes() == whole
    assert seen.check_marked().code == 0


def test_37_an_edit_that_was_signed_with_a_key_of_ones_own_is_refused(seen: Desk) -> None:
    seen.put(resealed(edited(seen.ledger.read_bytes()), keep=False), THIEF)
    assert THIEF.signing.id in seen.refused("head-untrusted")


def test_38_a_stolen_key_cannot_rewrite_what_was_seen(seen: Desk) -> None:
    seen.put(sealed(REWRITTEN))
    assert seen.check().code == 0  # whoever has the key rewrites what nobody has seen
    assert "run 'r2'" in seen.refused_by_mark("head-fork")


def test_38_nor_can_it_be_longer_than_what_was_seen_and_another(seen: Desk) -> None:
    longer = f"{REWRITTEN}run r4\nstep s1\ncommit pay{{ref: 4}} -> {{ok: true}}\nadvance\n"
    seen.put(sealed(longer), epoch=9)
    assert seen.check().code == 0
    seen.refused_by_mark("head-fork")


def test_38_nor_shorter(seen: Desk) -> None:
    seen.put(sealed(EARLY.replace("{ref: 2}", "{ref: 20}")))
    assert seen.check().code == 0
    seen.refused_by_mark("head-rollback")


def test_39_what_stands_behind_the_seal_is_refused(seen: Desk) -> None:
    whole = seen.ledger.read_bytes()
    seen.ledger.write_bytes(whole + lines_of(whole)[1])
    seen.refused("ledger-spliced")


def test_39_a_tail_without_a_seal_is_refused(seen: Desk) -> None:
    seen.ledger.write_bytes(b"".join(lines_of(seen.ledger.read_bytes())[:-1]))
    seen.refused("ledger-unsealed")


def test_40_a_torn_end_is_refused(seen: Desk) -> None:
    seen.ledger.write_bytes(seen.ledger.read_bytes()[:-30])
    seen.refused("ledger-truncated")


def test_40_a_torn_mark_is_refused_and_never_begun_anew(seen: Desk) -> None:
    whole = seen.mark.read_bytes()
    for torn in (b"", whole[: len(whole) // 2]):
        seen.mark.write_bytes(torn)
        assert str(seen.mark) in seen.refused_by_mark("mark-damaged")
    seen.mark.write_bytes(whole)
    assert seen.check_marked().code == 0


def test_41_the_head_of_another_agent_is_refused(seen: Desk) -> None:
    other = seen.put(sealed(LATE.replace("agent desk", "agent till")))
    stolen = msgspec.json.decode(lines_of(other)[-1], type=Seal).signature
    mine = sealed(LATE)
    seal = msgspec.json.decode(lines_of(mine)[-1], type=Seal)
    forged = encode(msgspec.structs.replace(seal, signature=stolen)) + b"\n"
    seen.ledger.write_bytes(b"".join([*lines_of(mine)[:-1], forged]))
    assert "'till'" in seen.refused("head-foreign")


def test_41_the_whole_ledger_of_another_agent_is_refused_by_the_mark(seen: Desk) -> None:
    seen.put(sealed(LATE.replace("agent desk", "agent till")))
    assert seen.check().code == 0
    seen.refused_by_mark("head-foreign")


def of_type(data: bytes, signed_as: str, said: str) -> bytes:
    """The ledger with a signature made for one type of payload that says it is of another."""
    *body, last = lines_of(data)
    seal = msgspec.json.decode(last, type=Seal)
    payload = head_bytes(head_of(seal, agent="desk", epoch=0, at="2026-11-30"))
    envelope = Envelope(
        payload_type=said,
        payload=payload,
        keyid=OURS.signing.id,
        signature=OURS.signing.key.sign(pre_authentication(signed_as, payload)),
    )
    seal = msgspec.structs.replace(seal, signature=write_envelope(envelope))
    return b"".join(body) + encode(seal) + b"\n"


def test_42_a_signature_of_another_type_is_refused_under_either_name(desk: Desk) -> None:
    signature = msgspec.json.decode(lines_of(desk.put(sealed(LATE)))[-1], type=Seal).signature
    assert signature is not None
    ours = open_envelope(signature, name="L").payload_type
    desk.ledger.write_bytes(of_type(sealed(LATE), "checkpoint", "checkpoint"))
    desk.refused("head-type")
    desk.ledger.write_bytes(of_type(sealed(LATE), "checkpoint", ours))
    desk.refused("head-signature")
    desk.ledger.write_bytes(of_type(sealed(LATE), ours, ours))
    assert desk.check().code == 0


def test_43_a_ledger_that_lost_its_signature_is_refused_where_one_is_asked_for(seen: Desk) -> None:
    seen.put(sealed(LATE), by=None)
    seen.refused("ledger-unsigned")
    seen.refused_by_mark("ledger-unsigned")
    ran = backstop("ledger", "verify", seen.ledger)
    assert ran.code == 0
    assert ran.out.endswith("; unsigned\n")


def test_43_a_mark_that_is_gone_is_said_to_begin(seen: Desk) -> None:
    seen.mark.unlink()
    assert "begins here" in seen.check_marked().out


def test_no_bit_of_a_signed_ledger_can_change(desk: Desk) -> None:
    whole = desk.put(sealed("run r1\nstep s1\ncommit pay{ref: 1} -> {ok: true}\nadvance\n"))
    seal = whole.index(b'{"t":"seal"')
    held = []
    for at in (*range(0, seal, 7), *range(seal, len(whole))):
        flipped = bytes([whole[at] ^ 1 << at % 8])
        desk.ledger.write_bytes(whole[:at] + flipped + whole[at + 1 :])
        try:
            check_signed(desk.ledger, agent=None, trusted=desk.keys, high_water=None)
        except LedgerError:
            continue
        held.append(at)
    assert held == []
    desk.ledger.write_bytes(whole)
    check_signed(desk.ledger, agent=None, trusted=desk.keys, high_water=None)


def test_a_signed_ledger_is_read_like_any_other(desk: Desk) -> None:
    plain, signed = sealed(LATE), desk.put(sealed(LATE))
    assert ledgerfile.read(signed, name="L").events == ledgerfile.read(plain, name="L").events
    assert backstop("ledger", "show", desk.ledger).code == 0
    assert backstop("diff", desk.ledger, desk.ledger).code == 0


def test_a_revoked_key_is_named_and_its_successor_believed(seen: Desk) -> None:
    seen.keys.write_text(
        f"revoked {OURS.public} lost in May\ntrusted {NEW.public} ci 2027\n", encoding="utf-8"
    )
    assert "lost in May" in seen.refused_by_mark("head-revoked")
    seen.put(seen.ledger.read_bytes(), NEW)
    ran = seen.check_marked()
    assert (ran.code, "(ci 2027)" in ran.out) == (0, True)


def test_the_mark_ends_at_the_highest_of_many_that_were_checked_at_once(desk: Desk) -> None:
    desk.put(sealed(LATE))
    other = Desk(folder=desk.folder / "two")
    other.folder.mkdir()
    other.put(sealed(EARLY))

    def check(file: Path) -> BaseException | None:
        try:
            check_signed(file, agent=None, trusted=desk.keys, high_water=desk.mark)
        except LedgerError as fault:
            return fault
        return None

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(check, [other.ledger, desk.ledger] * 4))
    assert found[1::2] == [None] * 4
    assert {fault.slug for fault in found if isinstance(fault, LedgerError)} <= {"head-rollback"}
    assert open_mark(desk.mark.read_bytes(), name="mark").head.size == LATE_SIZE
