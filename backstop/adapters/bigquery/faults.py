"""What an answer of BigQuery that is no success means: arithmetic on its status and its reason.

The reasons stand in its list of error messages; the status alone tells less than they do: a 403
is a limit that is over in a second, a quota that is used up until tomorrow, or no right at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import msgspec

_SAID: Final = 300


class Meaning(Enum):
    """What follows from a fault."""

    AGAIN = auto()
    """It failed on the other side, or nobody knows: the same request may be sent again."""
    LIMITED = auto()
    """Too many at once: the same request may be sent again, later."""
    FULL = auto()
    """A quota is used up."""
    DENIED = auto()
    MISSING = auto()
    EXISTS = auto()
    REFUSED = auto()


PASSING: Final = frozenset({Meaning.AGAIN, Meaning.LIMITED})
"""What may be gone the next time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What was said in place of a success, on one line, and what it means."""

    meaning: Meaning
    said: str


class Complaint(msgspec.Struct, frozen=True):
    """One error, as an answer or a job tells it."""

    reason: str = ""
    message: str = ""


class _Errors(msgspec.Struct, frozen=True):
    message: str = ""
    errors: tuple[Complaint, ...] = ()


class _Answer(msgspec.Struct, frozen=True):
    error: _Errors = _Errors()


_REASONS: Final[Mapping[str, Meaning]] = {
    "backendError": Meaning.AGAIN,
    "internalError": Meaning.AGAIN,
    "jobBackendError": Meaning.AGAIN,
    "jobInternalError": Meaning.AGAIN,
    "tableUnavailable": Meaning.AGAIN,
    "jobRateLimitExceeded": Meaning.LIMITED,
    "rateLimitExceeded": Meaning.LIMITED,
    "userRateLimitExceeded": Meaning.LIMITED,
    "quotaExceeded": Meaning.FULL,
    "accessDenied": Meaning.DENIED,
    "notFound": Meaning.MISSING,
    "duplicate": Meaning.EXISTS,
}
_STATUSES: Final[Mapping[int, Meaning]] = {
    401: Meaning.DENIED,
    403: Meaning.DENIED,
    404: Meaning.MISSING,
    408: Meaning.AGAIN,
    409: Meaning.EXISTS,
    429: Meaning.LIMITED,
    500: Meaning.AGAIN,
    502: Meaning.AGAIN,
    503: Meaning.AGAIN,
    504: Meaning.AGAIN,
}


def fault_of_answer(status: int, body: bytes) -> Fault:
    """The fault that an answer with this HTTP status tells of."""
    try:
        error = msgspec.json.decode(body, type=_Answer).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        error = _Errors()
    reason = error.errors[0].reason if error.errors else ""
    meaning = _REASONS.get(reason) or _STATUSES.get(status, Meaning.REFUSED)
    return Fault(meaning=meaning, said=_line(f"{status} {reason}", error.message))


def fault_of_job(complaint: Complaint) -> Fault:
    """The fault that ended a job, of whose work nothing was kept."""
    meaning = _REASONS.get(complaint.reason, Meaning.REFUSED)
    return Fault(meaning=meaning, said=_line(complaint.reason, complaint.message))


def _line(what: str, said: str) -> str:
    words = " ".join(f"{what.strip()}: {said}".split())
    return words.rstrip(": ")[:_SAID]
