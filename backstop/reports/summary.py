"""The job summary: the same body as the comment's, with more room and nothing hidden."""

from __future__ import annotations

from typing import Final

from backstop.core.verdict import Verdict
from backstop.reports.body import body_of, error_body, not_applicable_body
from backstop.reports.context import CommentContext
from backstop.reports.document import digest_of
from backstop.reports.section import Limits

MAX_SUMMARY: Final = 1_048_576
"""Bytes that a step may write; ours leaves room for what else the step says."""

_LIMITS: Final = Limits(room=900_000, rows=1_000, details=200)


def render_summary(verdict: Verdict, context: CommentContext) -> str:
    """The summary for a verdict, of fewer than `MAX_SUMMARY` bytes."""
    return body_of(verdict, context, _LIMITS, digest_of(verdict)) + "\n"


def render_error_summary(
    slug: str, message: str, context: CommentContext, *, exit_code: int = 2, log: str = ""
) -> str:
    """The summary for an error: nothing was judged."""
    return error_body(slug, message, context, exit_code=exit_code, log=log) + "\n"


def render_not_applicable_summary(context: CommentContext) -> str:
    """The summary where no agent is touched."""
    return not_applicable_body(context) + "\n"
