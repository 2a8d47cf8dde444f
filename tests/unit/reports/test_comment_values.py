"""Which values a public place shows: none without leave, and no secret anywhere."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from backstop.core.verdict import Decision, Judged, Verdict
from backstop.reports.comment import (
    render_comment,
    render_error,
)
from backstop.reports.escape import public
from backstop.reports.summary import render_summary
from tests.unit.reports.scenes import (
    CONTEXT,
    SCENES,
)
from tests.verdicts import (
    CHANGED,
    DROPPED,
    agent_verdict,
)


def test_g24_without_leave_no_value_of_an_argument_is_shown() -> None:
    """G24: field names and short keys; the control is the same comment with values allowed."""
    hidden, shown = SCENES["block"], SCENES["block-values"]
    for value in ("acme-corp", "ACME Corp"):
        assert value not in hidden
        assert value in shown
    assert "`/vendor_id`" in hidden
    assert "`k-old`" in hidden


def test_g24_what_stands_deeper_in_a_pointer_is_data_unless_it_looks_like_a_field() -> None:
    """G24: a mapping by address has the address in its path."""
    one = replace(CHANGED, paths=("/lines/1", "/by/ana@example.org", "/of/4111111111111111"))
    body = render_comment(Verdict(agents=(agent_verdict(one),)), CONTEXT)
    assert "`/lines/1`, `/by/…`, `/of/…`" in body
    assert "ana@" not in body


@pytest.mark.parametrize(
    "secret",
    [
        "ana@example.org",
        "sk_live_51H8abcdefgh",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
        "AKIAIOSFODNN7EXAMPLE",
        "password=hunter2",
        "Authorization: Bearer abc123def456",
        "4111 1111 1111 1111",
        "api_key: k3y-of-mine-1",
        "5f4dcc3b5aa765d61d8327deb882cf99",
        "aB3dE6gH9jK2mN5pQ8sT1vW4",
    ],
)
def test_g25_a_secret_is_masked_whole_wherever_it_stands(secret: str) -> None:
    """G25: in names, reasons and notes of a public place no end of it is left."""
    text = f"it said {secret} and went"
    one = replace(DROPPED, tool=text, run=text, step=text)
    verdict = Verdict(
        agents=(
            agent_verdict(
                one,
                Judged(divergence=one, waiver=text),
                decision=Decision.INCONCLUSIVE,
                why=(text,),
                notes=(text,),
            ),
        )
    )
    bodies = [
        render_comment(verdict, replace(CONTEXT, notes=(text,))),
        render_summary(verdict, CONTEXT),
        render_error("build", text, CONTEXT, log=text),
    ]
    for body in bodies:
        for part in re.split(r"[\s=]+", secret):
            assert (
                len(part) < 4
                or part in {"Bearer", "Authorization:", "password", "api_key:"}
                or (part not in body)
            )
    open_book = render_comment(verdict, replace(CONTEXT, show_values=True))
    assert secret in open_book


@pytest.mark.parametrize(
    "text",
    [
        "run acme-2026 was not replayed to its end: agent-hangs, and 3 more",
        "sha256:" + "ab" * 32,
        "github-token: the token has no right to write",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "2026-11-30T18:40:00+00:00",
        "the basic rules; 1,094 events",
        "actions/checkout@v4 and left-pad@1.2.3",
    ],
)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    assert public(text) == text
