"""Exceptions that mean "we could not do the work", each with a slug.

A slug is an anchor in ``docs/errors.md``; the faces print ``error[slug]: message``
and leave with ``exit_code``. Expected answers ("already done", "held") are values,
never exceptions.
"""

from __future__ import annotations

from typing import ClassVar


class BackstopError(Exception):
    """Something could not be done; ``str(error)`` is one line: what, where, what next."""

    slug: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, slug: str | None = None) -> None:
        super().__init__(" ".join(message.split()))
        if slug is not None:
            self.slug = slug  # type: ignore[misc]  # one instance may be more exact than its class


class UsageError(BackstopError):
    """The command, or an argument of it, cannot be understood."""

    slug = "usage"


class ConfigError(BackstopError):
    """``backstop.yaml`` cannot be read, or says something that has no meaning."""

    slug = "config"


class LedgerError(BackstopError):
    """A ledger file cannot be trusted or read; the message names the line."""

    slug = "ledger"


class IdentityError(BackstopError):
    """A call cannot be given an idempotency key."""

    slug = "no-identity"


class WireError(BackstopError):
    """The harness said something that the wire protocol does not allow."""

    slug = "wire"


class SandboxError(BackstopError):
    """The candidate's process could not be started, kept in bounds or stopped."""

    slug = "sandbox"


class MissingExtra(BackstopError):
    """An optional dependency is needed and absent; the message names the extra."""

    slug = "missing-extra"


class StaleClaim(BackstopError):
    """A claim was superseded; its outcome must be discarded."""

    slug = "stale-claim"
