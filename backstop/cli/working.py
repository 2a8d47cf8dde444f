"""``backstop worker``."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
from pathlib import Path

import typer

from backstop.config import load
from backstop.errors import UsageError
from backstop.ports import Delivery, Done, Handled
from backstop.reports.escape import plain
from backstop.wiring.station import settings_from
from backstop.wiring.working import work


def worker(
    subscription: str, *, config: Path, agent: str | None, store: str | None, at_once: int
) -> None:
    """Serve until SIGTERM or Ctrl-C, a line for each message. Raises `BackstopError`."""
    if at_once < 1:
        raise UsageError(f"--at-once: {at_once} messages at a time is no work")
    said = settings_from(os.environ)
    settings = dataclasses.replace(said, store=store or said.store)
    chosen = load(config).agent(agent)

    async def served() -> None:
        working = asyncio.ensure_future(
            work(chosen, settings, subscription=subscription, at_once=at_once, report=_report)
        )
        for stop in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(stop, working.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await working

    asyncio.run(served())


def _report(delivery: Delivery, answer: Handled) -> None:
    about = delivery.attributes
    step = about.get("cursor") or about.get("trigger_key") or "?"
    word = "done" if isinstance(answer, Done) else "later"
    typer.echo(plain(f"{word:<6}{about.get('run', '?')} {step}: {answer.reason}"))
