"""Any exception as one of ours: both faces tell whatever goes wrong in one line."""

from __future__ import annotations

from typing import Final

from backstop.core.canon import NotCanonical
from backstop.errors import BackstopError

DEBUG: Final = "BACKSTOP_DEBUG"


class SystemRefused(BackstopError):
    """The operating system refused something: a full disk, a missing right, no memory."""

    slug = "system"


class Bug(BackstopError):
    """Something that cannot happen did; the fault is ours."""

    slug = "bug"


def as_ours(error: Exception) -> BackstopError:
    """`error` as an exception that has a slug, a line and an exit code."""
    match error:
        case BackstopError():
            return error
        case NotCanonical():
            return BackstopError(str(error), slug=error.slug)
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return SystemRefused(
                f"{where}{error.strerror or error}; make room or give access, and run it again"
            )
        case MemoryError():
            return SystemRefused("out of memory; give the process more, or split the ledger")
        case _:
            return Bug(
                f"{type(error).__name__}: {error}; please report it, with the traceback that "
                f"{DEBUG}=1 shows"
            )
