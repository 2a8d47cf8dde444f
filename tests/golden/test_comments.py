"""What a pull request is told, as reviewed; `make golden` rewrites the files."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from backstop.reports.summary import (
    render_error_summary,
    render_not_applicable_summary,
    render_summary,
)
from tests.unit.reports.scenes import CONTEXT, LOG, SCENES, SEVERAL, UNTOUCHED

_HEAD = 9_000


def settled(text: str) -> str:
    """The text without digests, which every change of the document's form moves."""
    return re.sub(r"sha256:[0-9a-f]{8,}", "sha256:…", text)


@pytest.mark.parametrize("name", SCENES)
def test_the_comment_is_as_reviewed(name: str, golden: Callable[[str, str], None]) -> None:
    text = settled(SCENES[name])
    if len(text) > _HEAD:
        text = text[:_HEAD].rpartition("\n")[0] + "\n(and so on)\n"
    golden(f"reports/comment-{name}.md", text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("several", render_summary(SEVERAL, UNTOUCHED)),
        ("error", render_error_summary("image-build", "no wheel", CONTEXT, log=LOG)),
        ("not-applicable", render_not_applicable_summary(UNTOUCHED)),
    ],
    ids=lambda value: value if len(value) < 20 else "",
)
def test_the_summary_is_as_reviewed(
    name: str, text: str, golden: Callable[[str, str], None]
) -> None:
    golden(f"reports/summary-{name}.md", settled(text))
