"""What a person is shown of effects that are not decided."""

from __future__ import annotations

import json

import msgspec
import pytest

from backstop.core.events import (
    EffectClaimed,
    EffectFailed,
    EffectFenced,
    EffectInDoubt,
    EffectResolved,
    Event,
    Failure,
    RunOpened,
)
from backstop.core.fenced import out_twice
from backstop.core.lifecycle import Phase
from backstop.ports import Liveness, Settlement, Standing
from backstop.reports.effects import Listing, render, render_json, span

KEY = "4f2a91bc03de" + "0" * 52
CLAIMED = EffectClaimed(
    run="acme",
    at="2026-03-02T06:00:00.000Z",
    step="s3",
    tool="send_mail",
    key=KEY,
    fingerprint="f",
    owner="host/7/s3.1",
    fence=2,
    args=msgspec.Raw(b'{"to":"ana@example.org"}'),
)
DOUBT = EffectInDoubt(run="acme", at="", key=KEY, reason="TimeoutError: \x1b[2Jno answer", fence=2)


def standing(
    phase: Phase = Phase.IN_DOUBT,
    owner: Liveness = Liveness.GONE,
    settled: Settlement | None = DOUBT,
    claimed: EffectClaimed = CLAIMED,
) -> Standing:
    return Standing(
        claimed=claimed, phase=phase, fence=2, owner=owner, since_s=185.4, settled=settled
    )


def listing(*standings: Standing, told: tuple[Event, ...] = ()) -> Listing:
    return Listing(
        store="sqlite:///s.db",
        standings=standings,
        out_twice=out_twice(lambda: told),
        options=" --store sqlite:///s.db",
    )


def test_an_empty_list_says_so() -> None:
    assert render(listing()) == "no effect waits for a decision in sqlite:///s.db\n"


def test_a_doubt_says_why_who_and_what_to_type_next() -> None:
    assert render(listing(standing())) == (
        "1 effect not decided, 1 in doubt, in sqlite:///s.db\n"
        "\n"
        "4f2a91bc03de  send_mail  in doubt\n"
        "  where  run acme, step s3\n"
        '  args   {"to":"ana@example.org"}\n'
        "  since  3 min\n"
        "  owner  host/7/s3.1: gone\n"
        "  why    TimeoutError: \\u{1b}[2Jno answer\n"
        "  next   backstop effects resolve 4f2a91bc03de --store sqlite:///s.db "
        "--committed RESULT  (it happened)\n"
        "         backstop effects resolve 4f2a91bc03de --store sqlite:///s.db "
        "--failed  (it did not; drop it)\n"
        "         backstop effects resolve 4f2a91bc03de --store sqlite:///s.db "
        "--retry  (it did not; try again)\n"
    )


@pytest.mark.parametrize(
    ("capability", "told"),
    [("keyed", "asks again: the provider acts once on the key"), ("probe", "looks it up")],
)
def test_a_doubt_that_the_tool_can_settle_by_itself_says_so(capability: str, told: str) -> None:
    claimed = msgspec.structs.replace(CLAIMED, capability=capability)
    assert f"  else   the next delivery {told}\n" in render(listing(standing(claimed=claimed)))
    done = standing(Phase.RETRYABLE, settled=None, claimed=claimed)
    assert "  else " not in render(listing(done))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (standing(Phase.EXECUTING, Liveness.ALIVE, None), "wait: its owner is at it"),
        (standing(Phase.EXECUTING, Liveness.UNKNOWN, None), "cannot be seen from here"),
        (standing(Phase.EXECUTING, Liveness.GONE, None), "in doubt (left behind)"),
        (
            standing(
                Phase.RETRYABLE,
                settled=EffectFailed(run="a", at="", key=KEY, error=Failure(type="Closed")),
            ),
            "nothing: the next delivery tries it again",
        ),
        (
            standing(
                Phase.REOPENED,
                settled=EffectResolved(
                    run="a", at="", key=KEY, to="reopened", by="person:ana", reason="lost"
                ),
            ),
            "reopened by person:ana: lost",
        ),
        (
            standing(claimed=msgspec.structs.replace(CLAIMED, args=msgspec.Raw(b"{broken"))),
            "args   {broken",
        ),
    ],
)
def test_each_phase_has_its_words(shown: Standing, expected: str) -> None:
    assert expected in render(listing(shown))


def test_what_may_be_out_twice_comes_first() -> None:
    fenced = EffectFenced(run="acme", at="2026-03-02T07:00:00.000Z", key=KEY, fence=2)
    opened = RunOpened(run="acme", at="")
    text = render(listing(standing(), told=(opened, CLAIMED, fenced)))
    assert text.startswith(
        "MAY BE OUT TWICE: 1 effect\n"
        "  4f2a91bc03de  send_mail\n"
        "    where  run acme, step s3, at 2026-03-02T07:00:00.000Z\n"
    )


def test_what_may_be_out_twice_is_shown_even_where_its_claim_is_lost() -> None:
    fenced = EffectFenced(run="acme", at="2026-03-02T07:00:00.000Z", key=KEY, fence=2)
    assert "4f2a91bc03de  an effect" in render(listing(told=(fenced,)))
    (told,) = json.loads(render_json(listing(told=(fenced,))))["out_twice"]
    assert (told["tool"], told["step"], told["fence"]) == (None, None, 2)


def test_the_document_has_whole_keys_and_values() -> None:
    told = json.loads(render_json(listing(standing())))
    assert told["schema"] == "backstop.effects/1"
    (effect,) = told["effects"]
    assert effect["key"] == KEY
    assert effect["args"] == {"to": "ana@example.org"}
    assert (effect["phase"], effect["owner_is"], effect["in_doubt"]) == ("in doubt", "gone", True)
    assert effect["reason"] == "TimeoutError: \x1b[2Jno answer"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.2, "less than 1 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (5 * 86400, "5 d")],
)
def test_a_span_is_told_in_its_largest_unit(seconds: float, expected: str) -> None:
    assert span(seconds) == expected
