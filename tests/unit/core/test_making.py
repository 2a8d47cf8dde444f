"""A ledger in the making is held to what its strict reader will demand of it."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    Event,
    Header,
    RunClosed,
    RunOpened,
    StepStarted,
)
from backstop.core.ledgerfile import encode, verify
from backstop.core.lines import MAX_LINE
from backstop.core.making import Making
from backstop.errors import BackstopError

HEADER = Header(format=1, agent="desk", canon=1)
AT = "2026-01-01T00:00:00Z"
OPENED = RunOpened(run="r", at=AT)
STARTED = StepStarted(run="r", at=AT, step="s0", cursor=0)
CLAIMED = EffectClaimed(run="r", at=AT, step="s0", tool="pay", key="k", fingerprint="f")
COMMITTED = EffectCommitted(run="r", at=AT, key="k")
CLOSED = RunClosed(run="r", at=AT, status="complete")


def made(*events: Event) -> list[bytes]:
    """The lines of a ledger, or why there is none."""
    making = Making(HEADER, name="out")
    lines = [making.sealer.begin(), *(making.add(event) for event in events)]
    making.close()
    return [*lines, making.sealer.end()]


def test_what_is_whole_stands_up_to_the_strict_reader() -> None:
    assert verify(made(OPENED, STARTED, CLOSED), name="out").events == 3


@pytest.mark.parametrize(
    ("events", "slug"),
    [
        ([STARTED], "ledger-order"),
        ([OPENED, OPENED], "ledger-order"),
        ([OPENED, CLOSED, STARTED], "ledger-order"),
        ([OPENED, STARTED, COMMITTED], "ledger-lifecycle"),
        ([OPENED, STARTED, CLAIMED, CLOSED], "silent-skip"),
        (
            [OPENED, msgspec.structs.replace(STARTED, message=msgspec.Raw(b"[" * 200))],
            "ledger-format",
        ),
        (
            [msgspec.structs.replace(OPENED, state=msgspec.Raw(b'"' + b"x" * MAX_LINE + b'"'))],
            "ledger-line-too-long",
        ),
    ],
    ids=["unopened", "twice", "closed", "unclaimed", "skipped", "deep", "long"],
)
def test_what_its_reader_would_refuse_is_refused_at_once(events: list[Event], slug: str) -> None:
    with pytest.raises(BackstopError) as refused:
        made(*events)
    assert refused.value.slug == slug
    assert "out" in str(refused.value)


def test_what_is_deep_in_texts_only_is_no_fault() -> None:
    text = msgspec.Raw(encode(msgspec.structs.replace(OPENED, user="[" * 200)))
    made(OPENED, msgspec.structs.replace(STARTED, message=text), CLOSED)


def test_a_ledger_where_a_guard_stood_is_checked_otherwise() -> None:
    with pytest.raises(ValueError, match="a guard stood"):
        Making(msgspec.structs.replace(HEADER, guarded=True), name="out")
