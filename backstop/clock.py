"""The only file that reads the real time; everything else is given it."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The current instant, timezone-aware, in UTC."""
    return datetime.now(UTC)


class SystemClock:
    """The `Clock` of production."""

    def now(self) -> datetime:
        """The current instant, timezone-aware, in UTC."""
        return now()
