"""One worker process of the demonstration; `demo.py` starts some, and kills some.

It is what a team would run in production, but for three things: scripted models answer (there
is no key here), the tools write what they do into a file, and where the demonstration has
planned a crash, a tool stops in the middle of what it does and waits for kill -9.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from google.adk.plugins.base_plugin import BasePlugin

from backstop.adapters.content import version_of
from backstop.adapters.owners import liveness_of, this_process
from backstop.adapters.pubsub import Inbox, Place
from backstop.clock import SystemClock
from backstop.core.declaration import Namespace
from backstop.errors import BackstopError
from backstop.guard.claims.safety import Safety
from backstop.guard.journal import Journal
from backstop.guard.plugin.recorder import RecordingPlugin
from backstop.guard.workers.attendance import Attendance
from backstop.guard.workers.worker import Worker
from backstop.ports import Delivery, Done, Handled, Records
from backstop.wiring.stores import open_store
from backstop.wiring.working import sessions_beside
from examples.vendor_onboarding.demo_truth import Deed, Truth, deed
from examples.vendor_onboarding.record import AGENT, HERE, declared, header, staged
from examples.vendor_onboarding.v1 import agent

SUBSCRIPTION: Final = "workers"
_TAKES_S: Final = 0.05
"""How long a tool is at it, so that other deliveries find it at work."""
_KILLED_WITHIN_S: Final = 60


class Report(msgspec.Struct, frozen=True):
    """What a worker tells of one delivery, as a line of JSON on its standard output."""

    id: str
    run: str
    cursor: int
    done: bool
    reason: str


class World:
    """What stands behind the tools: the file of what happened, and the planned crashes."""

    def __init__(self, folder: Path) -> None:
        self._truth = Truth(folder / "truth.jsonl")
        self._plans = folder / "crashes"

    async def service(
        self, tool: str, arguments: Mapping[str, Any], answer: Callable[[], Any]
    ) -> Any:
        """Do what the tool is for, and answer as its body does."""
        done = deed(tool, arguments)
        if done is None:
            return answer()
        await asyncio.sleep(_TAKES_S)
        self._crash(done, "before")
        self._truth.write(done)
        self._crash(done, "after")
        return answer()

    def _crash(self, done: Deed, when: str) -> None:
        """Wait for kill -9, if it is planned here; a plan is carried out once."""
        plan = self._plans / plan_name(done, when)
        with contextlib.suppress(FileNotFoundError):
            plan.rename(plan.with_suffix(f".{os.getpid()}"))
            time.sleep(_KILLED_WITHIN_S)


def plan_name(done: Deed, when: str) -> str:
    """The file that plans a crash ``before`` or ``after`` something happens."""
    return f"{when} {done}.planned".replace("/", "_")


def worker(store: str, *, guarded: bool) -> Worker:
    """The worker; without a guard it is what many run: the agent, and nothing before its tools."""
    declarations, version = declared(), version_of(HERE / "v1")

    def journal(opened: Records) -> Journal:
        return Journal(
            store=opened,
            namespace=Namespace(agent=AGENT),
            declarations=declarations,
            version=version,
            owner=f"worker-{os.getpid()}",
        )

    def guard(journal: Journal) -> BasePlugin:
        if not guarded:
            return BasePlugin("nobody")
        return RecordingPlugin(journal, unsaid=Safety(no_effect_on=(ConnectionRefusedError,)))

    return Worker(
        app=agent.app,
        store=open_store(store, header=header(declarations, version)),
        journal=journal,
        guard=guard,
        sessions=sessions_beside(store),
        attendance=Attendance(process=this_process(), liveness=liveness_of, clock=SystemClock()),
    )


async def serve(said: argparse.Namespace) -> None:
    """Handle messages until told to stop."""
    serving = asyncio.ensure_future(
        Inbox(Place(project=said.project, emulator=said.messages), SUBSCRIPTION).serve(
            worker(said.store, guarded=not said.unguarded).handle, report=_report
        )
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await serving


def _report(delivery: Delivery, answer: Handled) -> None:
    report = Report(
        id=delivery.id,
        run=delivery.attributes["run"],
        cursor=int(delivery.attributes["cursor"]),
        done=isinstance(answer, Done),
        reason=answer.reason,
    )
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


def _end_with_parent() -> None:
    """Whoever started this holds the other end of standard input."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(1)


def main() -> int:
    """Serve until SIGTERM, or until whoever started this is gone."""
    parser = argparse.ArgumentParser(description="A worker of `make demo`.")
    for name in ("--store", "--project", "--messages", "--world"):
        parser.add_argument(name, required=True)
    parser.add_argument("--unguarded", action="store_true")
    said = parser.parse_args()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # The framework reports each call that is held with a traceback; here they are no news.
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    try:
        with staged(World(Path(said.world)).service):
            asyncio.run(serve(said))
    except BackstopError as error:
        print(f"error[{error.slug}]: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
