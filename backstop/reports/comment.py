"""The one comment on a pull request: hidden lines that only machines read, then the body.

The first line is the marker by which the comment is found again, the second says which run
wrote it, so that an older run does not write over a newer one's; lines on agents follow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from backstop.core.verdict import Verdict
from backstop.reports.body import (
    body_of,
    error_body,
    not_applicable_body,
)
from backstop.reports.carried import MARKER, remembered, state_line
from backstop.reports.context import CommentContext
from backstop.reports.document import digest_of
from backstop.reports.escape import in_comment
from backstop.reports.markdown import fitting
from backstop.reports.section import Limits, passed_over

MAX_COMMENT: Final = 65_536
"""Characters that a comment may have; ours stays below it in bytes too."""

_LIMITS: Final = Limits(room=56_000, rows=50, details=20)
_ROOM_FOR_STATE: Final = 7_000
_CONFIG_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


def render_comment(verdict: Verdict, context: CommentContext) -> str:
    """The comment for a verdict, of fewer than `MAX_COMMENT` bytes."""
    remember = [
        remembered(agent, head=context.head, show_values=context.show_values)
        for agent in verdict.agents
        if not passed_over(agent, context.spared)
    ]
    judged = {one.agent for one in remember}
    lasting = [one for one in context.carried if one.agent not in judged]
    lines = [state_line(one) for one in (*remember, *lasting)]
    digest = digest_of(verdict)
    body = body_of(verdict, context, _LIMITS, digest)
    return _comment(body, context, digest, lines)


def render_error(
    slug: str, message: str, context: CommentContext, *, exit_code: int = 2, log: str = ""
) -> str:
    """The comment for an error: nothing was judged. `log` is the end of an untrusted output."""
    body = error_body(slug, message, context, exit_code=exit_code, log=log)
    return _comment(body, context, "", [state_line(one) for one in context.carried])


def render_not_applicable(context: CommentContext) -> str:
    """The comment where no agent is touched: neither a pass nor a fault (G20)."""
    body = not_applicable_body(context)
    return _comment(body, context, "", [state_line(one) for one in context.carried])


def marker(config_id: str) -> str:
    """The first line of the comments of one gate. Raises `ValueError` for an odd `config_id`."""
    if not _CONFIG_ID.fullmatch(config_id) or "--" in config_id:
        raise ValueError(
            f"{config_id!r} is no id for a comment: use letters, digits, `.`, `_`, `-`"
        )
    return f"{MARKER}{config_id} -->"


def _comment(body: str, context: CommentContext, digest: str, lines: Iterable[str]) -> str:
    run = {
        "run": context.run,
        "attempt": context.attempt,
        "head": context.head,
        "digest": digest,
    }
    told = f"<!-- backstop-run: {in_comment(json.dumps(run, separators=(',', ':')))} -->"
    kept = fitting(lines, _ROOM_FOR_STATE)
    return "\n".join([marker(context.config_id), told, *kept, "", body, ""])
