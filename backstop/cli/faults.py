"""What can only go wrong at the command line itself."""

from __future__ import annotations

from typing import ClassVar

from backstop.errors import BackstopError


class Interrupted(BackstopError):
    """A person stopped the command."""

    slug = "interrupted"
    exit_code: ClassVar[int] = 130


class OutputClosed(BackstopError):
    """Whoever read our output went away before its end."""

    slug = "output-closed"


class SelftestFailed(BackstopError):
    """The comparer did not find what was planted for it."""

    slug = "selftest"
