"""The claim lifecycle: guard.md's state machine and its invariants I1-I5, as far as pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstop.core import ledgerfile
from backstop.core.events import EffectResolved, RunOpened
from backstop.core.lifecycle import (
    RAISES_FENCE,
    TRANSITIONS,
    UNBORN,
    Illegal,
    Life,
    Lives,
    Move,
    Phase,
    advance,
    decided,
    move_of,
)
from backstop.errors import LedgerError
from tests.dsl import scenario, sealed

MOVES = st.tuples(st.sampled_from(Move), st.integers(0, 4))


def walk(moves: Iterable[tuple[Move, int]]) -> list[Life]:
    """The lives that a record goes through, illegal moves left out."""
    lives = [UNBORN]
    for move, fence in moves:
        after = advance(lives[-1], move, fence=fence)
        if isinstance(after, Life):
            lives.append(after)
    return lives


@given(st.lists(MOVES, max_size=30))
def test_i2_the_fence_never_falls_and_every_claim_raises_it(moves: list[tuple[Move, int]]) -> None:
    """I2: the fence only rises; one live token."""
    life = UNBORN
    for move, fence in moves:
        after = advance(life, move, fence=fence)
        if isinstance(after, Illegal):
            continue
        assert after.fence > life.fence if move in RAISES_FENCE else after.fence == life.fence
        life = after


@given(st.lists(MOVES, max_size=30))
def test_i3_committed_never_changes(moves: list[tuple[Move, int]]) -> None:
    """I3: COMMITTED is absorbing, and so is FAILED."""
    lives = walk(moves)
    for end in (Phase.COMMITTED, Phase.FAILED):
        reached = [index for index, life in enumerate(lives) if life.phase is end]
        assert reached in ([], [len(lives) - 1])


@pytest.mark.parametrize(("phase", "move"), list(product(Phase, Move)))
def test_i3_nobody_settles_with_a_superseded_fence(phase: Phase, move: Move) -> None:
    """I3: a settlement needs the record's own fence, a claim a higher one."""
    life = Life(phase=phase, fence=3)
    right = 4 if move in RAISES_FENCE else 3
    legal = (phase, move) in TRANSITIONS
    assert isinstance(advance(life, move, fence=right), Life) is legal
    for fence in {1, 2, 3, 4} - {right}:
        assert isinstance(advance(life, move, fence=fence), Illegal)


def test_i4_a_cursor_passes_only_what_is_decided() -> None:
    """I4: committed, or failed for good."""
    assert {phase for phase in Phase if decided(phase)} == {Phase.COMMITTED, Phase.FAILED}


def test_i5_nothing_but_a_person_leads_from_doubt_to_another_execution() -> None:
    """I5: out of doubt lead the late owner's commit and a resolution; a claim does not."""
    doubts = {move: to for (phase, move), to in TRANSITIONS.items() if phase is Phase.IN_DOUBT}
    out = {move for move, to in doubts.items() if to is not Phase.IN_DOUBT}
    assert doubts.keys() - out == {Move.DOUBT}
    assert out == {Move.COMMIT, Move.RESOLVE_COMMITTED, Move.RESOLVE_FAILED, Move.REOPEN}
    claimable = {phase for phase, move in TRANSITIONS if move is Move.CLAIM}
    assert Phase.IN_DOUBT not in claimable
    assert not {Phase.COMMITTED, Phase.FAILED} & claimable


def test_every_phase_can_be_reached_and_every_move_made() -> None:
    assert {UNBORN.phase, *TRANSITIONS.values()} == set(Phase)
    assert {move for _, move in TRANSITIONS} == set(Move)


def test_an_illegal_move_says_why() -> None:
    done = Life(phase=Phase.COMMITTED, fence=1)
    assert advance(done, Move.CLAIM, fence=2) == Illegal(
        reason="cannot claim an effect that is committed"
    )
    running = Life(phase=Phase.EXECUTING, fence=2)
    assert advance(running, Move.COMMIT, fence=1) == Illegal(
        reason="its fence 1 is not the current one, 2"
    )
    assert advance(running, Move.CLAIM, fence=2) == Illegal(
        reason="its fence 2 does not rise above 2"
    )


def test_a_resolution_to_something_unknown_is_illegal() -> None:
    odd = EffectResolved(run="r", at="", key="k", to="maybe", by="ada")
    with pytest.raises(ValueError, match="maybe"):
        move_of(odd)
    refused = Lives(guarded=True).follow(odd)
    assert refused is not None
    assert "committed, failed, reopened" in refused.reason
    assert move_of(RunOpened(run="r", at="")) is None


def legal(text: str) -> str | None:
    """Why `ledger verify` finds the claims of a text illegal; None if it does not."""
    try:
        ledgerfile.verify((sealed(text),), name="L")
    except LedgerError as exc:
        return f"{exc.slug}: {exc}"
    return None


@pytest.mark.parametrize(
    "story",
    [
        "commit pay{to: a}",
        "fail pay{to: a}",
        "flop pay{to: a}\ncommit pay{to: a}",
        "flop pay{to: a}\nflop pay{to: a}\nfail pay{to: a}",
        "claim pay{to: a}\ncommit pay{to: a}",  # keyed takeover of a dead owner's claim
        "doubt pay{to: a}\nsettle pay{to: a}",  # the late owner
        "doubt pay{to: a}\nresolve committed pay{to: a}",
        "doubt pay{to: a}\nresolve failed pay{to: a}",
        "doubt pay{to: a}\nresolve reopened pay{to: a}\ncommit pay{to: a}",
    ],
)
def test_the_stories_of_the_state_machine_are_legal(story: str) -> None:
    assert legal(f"run r\nstep s\n{story}") is None


@pytest.mark.parametrize(
    "story",
    [
        "settle pay{to: a}",
        "commit pay{to: a}\ncommit pay{to: a}",
        "commit pay{to: a}\nsettle pay{to: a}",
        "commit pay{to: a}\nbreak pay{to: a}",
        "fail pay{to: a}\ncommit pay{to: a}",
        "doubt pay{to: a}\nclaim pay{to: a}",
        "doubt pay{to: a}\nbreak pay{to: a}",
        "claim pay{to: a}\nresolve committed pay{to: a}",
        "flop pay{to: a}\nsettle pay{to: a}",
    ],
)
def test_what_the_table_does_not_have_is_refused(story: str) -> None:
    says = legal(f"run r\nstep s\n{story}")
    assert says is not None
    assert says.startswith("ledger-lifecycle: L, line ")


def test_a_late_owner_cannot_settle_a_claim_that_was_taken_over() -> None:
    made = scenario("run r\nstep s\nclaim pay{to: a}\ncommit pay{to: a}")
    *head, commit = made.events
    stale = msgspec.structs.replace(commit, fence=1)
    data = b"".join(ledgerfile.seal_lines(made.header, [*head, stale]))
    with pytest.raises(LedgerError, match="fence 1 is not the current one, 2"):
        ledgerfile.verify((data,), name="L")


def test_g8_without_a_guard_one_call_may_go_out_twice() -> None:
    """G8: the same mail went out twice by two workers; the ledger says so and is legal."""
    start = "agent desk unguarded\nrun r\nstep s\n"
    twice = "commit pay{to: a}\ncommit pay{to: a}"
    assert legal(start + twice) is None
    at_once = "claim pay{to: a}\nclaim pay{to: a}\nsettle pay{to: a}\nsettle pay{to: a}"
    assert legal(start + at_once) is None
    assert legal(start + "fail pay{to: a}\ncommit pay{to: a}") is None
    reopened = "doubt pay{to: a}\nresolve reopened pay{to: a}\ncommit pay{to: a}"
    assert legal(start + reopened) is None
    assert legal(start + "settle pay{to: a}") is not None
    assert legal(start + "commit pay{to: a}\nsettle pay{to: a}") is not None


def test_without_a_guard_an_effect_is_open_until_its_last_copy_is_settled() -> None:
    made = scenario(
        "agent d unguarded\nrun r\nstep s\nclaim p{to: a}\nclaim p{to: a}\nsettle p{to: a}"
    )
    lives = Lives(guarded=False)
    assert [lives.follow(event) for event in made.events] == [None] * len(made.events)
    key = made.events[-1].key  # type: ignore[union-attr]  # the last one settles
    assert lives.phase(key) is Phase.EXECUTING
    assert lives.follow(made.events[-1]) is None
    assert lives.phase(key) is Phase.COMMITTED
