"""When a request may be sent again, as arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstop.adapters.github.retrying import Again, again, backoff_s

NOON = "Mon, 30 Nov 2026 12:00:00 GMT"
DATE = {"date": NOON}
RESET = {"x-ratelimit-reset": "1796040090"}
SPENT = {"x-ratelimit-remaining": "0"}


@pytest.mark.parametrize(
    ("status", "headers", "said", "expected"),
    [
        (500, {}, "", Again(wait_s=0.5, limited=False)),
        (503, {"retry-after": "20"}, "", Again(wait_s=20, limited=False)),
        (
            503,
            {"retry-after": NOON},
            "",
            Again(wait_s=0.5, limited=False),
        ),
        (408, {}, "", Again(wait_s=0.5, limited=False)),
        (429, {}, "", Again(wait_s=60.5, limited=True)),
        (429, {"retry-after": "3"}, "", Again(wait_s=3, limited=True)),
        (403, {"retry-after": "3"}, "", Again(wait_s=3, limited=True)),
        (
            403,
            {**SPENT, **DATE, **RESET},
            "",
            Again(wait_s=91, limited=True),
        ),
        (403, {**SPENT, **DATE, "x-ratelimit-reset": "5"}, "", Again(wait_s=1, limited=True)),
        (403, {**SPENT, **RESET}, "", Again(wait_s=60, limited=True)),
        (403, {**SPENT, **DATE}, "", Again(wait_s=60, limited=True)),
        (403, {}, "You have exceeded a secondary Rate Limit", Again(wait_s=60.5, limited=True)),
        (403, {"x-ratelimit-remaining": "9"}, "Resource not accessible by integration", None),
        (401, {"retry-after": "3"}, "", None),
        (404, {}, "", None),
        (422, SPENT, "rate limit", None),
        (501, {}, "", None),
    ],
)
def test_an_answer_says_whether_and_when(
    status: int, headers: Mapping[str, str], said: str, expected: Again | None
) -> None:
    assert again(status=status, headers=headers, said=said, tried=1, chance=0) == expected


@given(st.integers(1, 60), st.floats(0, 1))
def test_a_pause_is_never_none_and_never_long(tried: int, chance: float) -> None:
    assert 0.5 <= backoff_s(tried, chance) <= 30


@given(st.integers(1, 60), st.floats(0, 1))
def test_a_later_pause_is_not_shorter(tried: int, chance: float) -> None:
    assert backoff_s(tried, chance) <= backoff_s(tried + 1, chance)
