"""The second of two stages: posts what a run without rights has judged, and judges nothing.

The report comes from a run of the pull request's own workflow, so it is data from outside: it is
read strictly, rendered anew, and believed in nothing but what it says about itself. Which pull
request is meant, and at which commit, GitHub says.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from backstop.action.inputs import InputError
from backstop.action.outcome import Failed, Judged, Outcome
from backstop.action.reporting import ERROR, ERROR_SCHEMA, VERDICT
from backstop.adapters.github.client import Denied, GitHub
from backstop.adapters.github.event import Event, Kind
from backstop.adapters.github.pulls import pull_of
from backstop.errors import BackstopError
from backstop.gate.request import Judgement
from backstop.reports.document import read
from backstop.reports.reading import verdict_of

_MOST: Final = 16 * 1024 * 1024
REPORTED: Final = (
    "As reported by the run of this pull request's own workflow, which its author can edit. The "
    "check of that run decides, not this comment."
)


class BadArtifact(BackstopError):
    """Another run's report cannot be used."""

    slug = "artifact"


class _Error(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema: str
    slug: Annotated[str, Meta(pattern="^[a-z0-9-]{1,60}$")]
    message: Annotated[str, Meta(max_length=4_000)]
    exit_code: Annotated[int, Meta(ge=2, le=3)]


def pull_request_of(event: Event, github: GitHub) -> int | None:
    """The pull request that the report is for; None where nobody waits for it any more.

    Raises `BackstopError`.
    """
    if event.kind is not Kind.WORKFLOW_RUN:
        raise InputError(
            f"input post-from: this workflow runs on {event.kind.value}, and another run's report "
            "is posted on workflow_run"
        )
    number = pull_of(github, event)
    if isinstance(number, Denied):
        raise BadArtifact(
            f"the pull requests of {event.repo} are not shown ({number}); give the job "
            "`pull-requests: write`"
        )
    return number


def reported(folder: Path) -> Outcome:
    """What another run left in `folder`. Raises `BackstopError` for what is no report."""
    verdict, error = _bytes(folder / VERDICT), _bytes(folder / ERROR)
    if (verdict is None) == (error is None):
        raise BadArtifact(
            f"the folder of the input post-from has to hold one of {VERDICT} and {ERROR}; let the "
            "first workflow upload its report-path, whatever its exit code"
        )
    if verdict is not None:
        document = read(verdict, name=VERDICT)
        return Judged(judgement=Judgement(verdict=verdict_of(document, name=VERDICT)))
    try:
        said = msgspec.json.decode(error or b"", type=_Error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise BadArtifact(f"{ERROR}: no error that Backstop wrote: {fault}") from None
    if said.schema != ERROR_SCHEMA:
        raise BadArtifact(f"{ERROR}: written in another form than {ERROR_SCHEMA}")
    return Failed(slug=said.slug, message=said.message, exit_code=said.exit_code)


def _bytes(path: Path) -> bytes | None:
    """The file's content; None where there is none. It must be a plain file, and of some size."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise BadArtifact(f"{path.name}: cannot be read: {fault.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadArtifact(f"{path.name}: no file")
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise BadArtifact(f"{path.name}: larger than any report, {_MOST:,} bytes")
    return data
