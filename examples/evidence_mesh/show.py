"""Shows a trust break and its recovery: exactly what does not hold is made anew, and no more.

    python -m examples.evidence_mesh.show

Four agents on the real framework, behind guard and recorder, into a SQLite store with a clock
that stands still. The last of them takes ten minutes, and the snapshot that the second one read
is too old by then. Nothing is published on it until it was read again, and all that was made
from it holds. Exit code 1 if that is not how it came.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from backstop.adapters.payloads import FolderPayloads
from backstop.core.checkpoint import Usage
from backstop.errors import BackstopError
from backstop.mesh.judging import Seen
from backstop.mesh.recovering import Recovery
from backstop.wiring.stores import open_store
from examples.evidence_mesh.desk import ACTION, Desk, Pins, header, pins_of_today
from examples.evidence_mesh.outside import World

LATE_S: Final = 600
"""How long the orchestrator takes: longer than the history snapshot stays fresh."""
OTHERWISE: Final = "340 shifts, rate=0.64"
ALIKE: Final = "340 shifts, rate=0.71"


def opened(folder: Path, world: World, pins: Pins) -> Desk:
    """A desk whose store is in a folder."""
    store = open_store(f"sqlite:///{folder}/desk.db", header=header(), clock=world.clock)
    payloads = FolderPayloads(folder / "payloads")
    return Desk(store=store, payloads=payloads, world=world, pins=pins)


def quiet() -> None:
    """The framework warns of its own experiments, and logs each attempt that ends early."""
    warnings.simplefilter("ignore")
    logging.getLogger("google_adk").setLevel(logging.CRITICAL)


async def played(folder: Path, history: str) -> Iterator[str]:
    """One run, the fault, and the recovery with what history says by then; lines that tell it."""
    world = World()
    world.meanwhile["orchestrator"] = lambda: world.clock.wait(LATE_S)
    desk = opened(folder, world, await pins_of_today())
    await desk.begin()
    before, asked = desk.seen(), len(world.asked)
    blocked = [*world.published]
    world.history = history
    done = await desk.recover()
    if not isinstance(done, Recovery) or done.stopped or blocked or len(world.published) != 1:
        told = done.stopped if isinstance(done, Recovery) else f"held by {done.owner}"
        raise BackstopError(
            f"the run did not recover as it should: {told or 'the action went out otherwise'}"
        )
    after = desk.seen()
    return _told(before, after, done, world.asked[asked:], world.published)


def _told(
    before: Seen, after: Seen, done: Recovery, asked: list[str], published: list[str]
) -> Iterator[str]:
    yield "  step                          after the fault                 recovered"
    for step, verdict in before.verdicts.items():
        now = after.verdicts[step]
        how = "anew" if after.graph[step].gen else "kept"
        name = step.removeprefix("s0/").removeprefix("desk/")
        yield f"  {name:29} {verdict.state:12} {verdict.reason:18} {now.state}, {how}"
    receipt = done.receipt
    yield ""
    yield f"  asked again: {', '.join(asked)}"
    yield f"  published:   {published[0]}"
    yield ""
    yield "                               model calls   input tokens"
    yield _line("restart, as recorded", receipt.restart)
    yield _line("spent, measured", receipt.spent)
    yield _line("avoided, as recorded", receipt.avoided)
    yield f"    {receipt.saved:.1f} % of a restart's input tokens were not spent"


def _line(name: str, usage: Usage) -> str:
    return f"    {name:25} {usage.calls:12,} {usage.input_tokens:14,}"


def text() -> str:
    """The whole of it. Raises `BackstopError` if it is not as it should be."""
    lines = [
        "Evidence desk: scout, statistician, skeptic, orchestrator, publish_action",
        f"The orchestrator takes {LATE_S} s; a history snapshot stays fresh for 200 s.",
    ]
    for title, history in (
        ("History says something else when it is read again", OTHERWISE),
        ("History has grown, and the statistician answers as before", ALIKE),
    ):
        with tempfile.TemporaryDirectory(prefix="backstop-mesh-") as folder:
            lines += ["", title, "", *asyncio.run(played(Path(folder), history))]
    lines += [
        "",
        f"Nothing went out while {ACTION.rpartition('/')[2]} was BLOCKED.",
        "These are receipts of two runs, no claim about others. The usage is scripted:",
        "it is what stand-ins for the models say of themselves.",
    ]
    return "".join(f"{line}\n" for line in lines)


def main() -> int:
    """Play it twice, and say how it went."""
    quiet()
    try:
        sys.stdout.write(text())
    except BackstopError as error:
        print(f"error[{error.slug}]: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
