"""What a tool can do about a doubt, and what follows of it (I5)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from backstop.core.events import EffectClaimed, EffectResolved
from backstop.errors import BackstopError, UsageError
from backstop.guard.claims.capability import (
    Capability,
    DidNotHappen,
    Found,
    Happened,
    Keyed,
    Probe,
    Unknown,
    claimed_with,
    downstream_key,
    keyed,
    probe,
    probing,
    resolution,
    seconds,
)
from backstop.ports import Held, InDoubt

PAY = EffectClaimed(run="r", at="", v="v1", step="s0", tool="pay", key="k" * 64, fingerprint="f")
AGAIN = msgspec.structs.replace(PAY, override='{"again":"lost"}')


def ask(key: str, arguments: Any) -> Found:
    return Unknown()


KEYED = keyed("key", retention="24h")
PROBE = probe(ask, settle="30s")


def doubt(**about: Any) -> InDoubt:
    return InDoubt(reason="timeout", fence=3, **about)


def remembered(**about: Any) -> InDoubt:
    return doubt(**{"capability": "keyed", "retention_s": 86400, "claim_age_s": 60} | about)


@pytest.mark.parametrize(
    ("span", "expected"),
    [("0s", 0), ("30s", 30), ("5m", 300), ("24h", 86400), ("30d", 2_592_000),
     (timedelta(minutes=1), 60), (timedelta(), 0)],
)  # fmt: skip
def test_a_span_is_a_whole_number_and_a_unit(span: str | timedelta, expected: float) -> None:
    assert seconds(span) == expected


@pytest.mark.parametrize(
    "span", ["", "30", "s", "1.5h", "-1s", " 1s", "1w", "1h30m", "٣s", "1234567s", timedelta(-1)]
)
def test_anything_else_is_no_span(span: str | timedelta) -> None:
    with pytest.raises(UsageError, match="no time span"):
        keyed("key", retention=span)
    with pytest.raises(UsageError):
        probe(ask, settle=span)


def test_a_claim_says_what_its_tool_can_do_about_a_doubt() -> None:
    assert claimed_with(PAY, None) == PAY
    by_key = claimed_with(PAY, KEYED)
    assert (by_key.capability, by_key.retention_s, by_key.settle_s) == ("keyed", 86400, 0)
    by_probe = claimed_with(PAY, PROBE)
    assert (by_probe.capability, by_probe.retention_s, by_probe.settle_s) == ("probe", 0, 30)
    assert [probing(PROBE), probing(KEYED)] == [ask, None]


def test_a_provider_is_handed_our_key_and_another_one_for_each_deliberate_repeat() -> None:
    more = msgspec.structs.replace(PAY, override='{"again":"lost too"}')
    keys = {downstream_key(intent) for intent in (PAY, AGAIN, more)}
    assert downstream_key(PAY) == PAY.key
    assert len(keys) == 3
    assert {len(key) for key in keys} == {64}


def reopened(by: str, reason: str) -> EffectResolved:
    return EffectResolved(
        run="r", at="", v="v1", key=PAY.key, to="reopened", by=by, fence=4, reason=reason
    )


def test_i5_keyed_reopens_as_long_as_the_provider_remembers() -> None:
    """I5: whoever runs it, and whether it still runs, does not matter."""
    for age in (0, 86399):
        said = resolution(KEYED, PAY, remembered(claim_age_s=age), Unknown())
        why = "the provider acts once on its key, which it still remembers"
        assert said == reopened("keyed", why)


@pytest.mark.parametrize(
    "about",
    [
        {"claim_age_s": 86400},
        {"retention_s": 60},  # as it was when the key was sent
        {"capability": ""},  # it was sent without a key
        {"capability": "probe"},
        {"override": AGAIN.override},  # it was sent with another key
    ],
    ids=["forgotten", "forgotten sooner", "none then", "probe then", "another key"],
)
def test_i5_keyed_reopens_nothing_that_the_provider_may_not_know(about: dict[str, Any]) -> None:
    """I5."""
    assert resolution(KEYED, PAY, remembered(**about), Unknown()) is None


def test_i5_keyed_does_not_trust_a_retention_that_was_shortened_since() -> None:
    """I5."""
    shorter = Keyed(param="key", retention_s=60)
    assert resolution(shorter, PAY, remembered(), Unknown()) is None


def test_keyed_reopens_a_repeat_for_whoever_asks_for_the_same_repeat() -> None:
    again = remembered(override=AGAIN.override, repeats=True)
    assert isinstance(resolution(KEYED, AGAIN, again, Unknown()), EffectResolved)
    assert resolution(KEYED, PAY, again, Unknown()) is None


@pytest.mark.parametrize("gone", [True, False])
def test_a_lookups_yes_is_believed_at_once(gone: bool) -> None:
    said = resolution(PROBE, PAY, doubt(gone=gone), Happened({"ref": 7}))
    assert said == EffectResolved(
        run="r",
        at="",
        v="v1",
        key=PAY.key,
        to="committed",
        by="probe",
        fence=3,
        reason="the lookup found it",
        result=msgspec.Raw(b'{"ref":7}'),
    )


def test_i5_a_lookups_no_counts_once_its_owner_is_gone_and_the_effect_had_time_to_show() -> None:
    """I5: and not before."""
    why = "its owner is gone, and the lookup knows of no such effect"
    said = resolution(PROBE, PAY, doubt(gone=True, age_s=30), DidNotHappen())
    assert said == reopened("probe", why)
    assert resolution(PROBE, PAY, doubt(gone=False, age_s=9999), DidNotHappen()) is None
    assert isinstance(resolution(PROBE, PAY, doubt(gone=True, age_s=29), DidNotHappen()), Held)
    once_keyed = doubt(gone=True, age_s=9999, capability="keyed")
    assert resolution(PROBE, PAY, once_keyed, DidNotHappen()) is None


def test_i5_a_lookup_waits_for_the_longer_of_two_settle_times() -> None:
    """I5: that of the claim, and that of today."""
    late = doubt(gone=True, age_s=45, settle_s=60)
    assert isinstance(resolution(PROBE, PAY, late, DidNotHappen()), Held)


@pytest.mark.parametrize("found", [Happened("paid"), DidNotHappen(), Unknown()])
def test_a_lookup_says_nothing_about_a_deliberate_repeat(found: Found) -> None:
    """It finds the first one, too."""
    again = doubt(gone=True, age_s=9999, override=AGAIN.override, repeats=True)
    assert resolution(PROBE, AGAIN, again, found) is None


@pytest.mark.parametrize("capability", [PROBE, None])
def test_who_knows_nothing_resolves_nothing(capability: Capability | None) -> None:
    assert resolution(capability, PAY, doubt(gone=True, age_s=9999), Unknown()) is None


def test_what_a_lookup_found_must_be_something_that_can_be_kept() -> None:
    with pytest.raises(BackstopError, match="lookup of pay") as caught:
        resolution(PROBE, PAY, doubt(), Happened(object()))
    assert caught.value.slug == "result-not-canonical"


def test_capabilities_are_what_their_makers_say() -> None:
    assert Keyed(param="key", retention_s=86400) == KEYED
    assert Probe(ask=ask, settle_s=30) == PROBE
