"""The full report, as files below the workspace: for people, for later steps, for an artifact.

An artifact of a public repository is public: unless the workflow says otherwise, names are
written and values are not.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from backstop.action.inputs import InputError, within
from backstop.action.outcome import Failed, Judged, NotApplicable, Outcome
from backstop.core.canon import Json
from backstop.core.literal import literal
from backstop.reports.document import document
from backstop.reports.escape import in_json
from backstop.reports.masking import masked

VERDICT: Final = "verdict.json"
ERROR: Final = "error.json"
ERROR_SCHEMA: Final = "backstop.error/1"
_MARKDOWN: Final = "report.md"


def write_report(
    workspace: Path,
    folder: PurePosixPath,
    outcome: Outcome,
    *,
    markdown: str,
    show_values: bool,
) -> None:
    """Write the report of `outcome` below `folder`, in place of an older one.

    Everything belongs to whoever owns the workspace. Raises `InputError` where a link leads
    out of it, or where the folder holds folders of the report's names.
    """
    place = within(workspace, folder)
    made = [part for part in (place, *place.parents) if not part.exists()]
    place.mkdir(parents=True, exist_ok=True)
    for name in (VERDICT, ERROR, _MARKDOWN):
        _remove(place / name)
    files = {_MARKDOWN: markdown, **_data(outcome, show_values=show_values)}
    for name, text in files.items():
        _write(place / name, text)
    owner = workspace.stat()
    for path in (*made, *(place / name for name in files)):
        # Runners of one's own keep their workspace: what root left there, they cannot delete.
        with contextlib.suppress(PermissionError):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _data(outcome: Outcome, *, show_values: bool) -> Mapping[str, str]:
    match outcome:
        case Judged(judgement=judgement):
            told = document(outcome.verdict, timing_ms=judgement.timing_ms)
            return {VERDICT: _json(told if show_values else masked(told))}
        case NotApplicable(judgement=judgement):
            told = document(judgement.verdict, timing_ms=judgement.timing_ms)
            return {VERDICT: _json(told if show_values else masked(told))}
        case Failed():
            said: dict[str, Json] = {
                "schema": ERROR_SCHEMA,
                "slug": outcome.slug,
                "message": outcome.message,
                "exit_code": outcome.exit_code,
            }
            return {ERROR: _json(said)}


def _json(value: Json) -> str:
    return in_json(literal(value)) + "\n"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        raise InputError(f"{path.name} in the folder of the report is a folder; name another")
    path.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    # Whatever of that name the checkout brought along is gone by now: the file has to be new.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
