"""Shows a trust break and its recovery: exactly what does not hold is made anew, and no more.

    python -m examples.evidence_mesh.show

Four agents on the real framework, behind guard and recorder, into a SQLite store with a clock
that stands still. The last of them takes ten minutes, and the snapshot that the second one read
is too old by then. Nothing is published on it until it was read again, and all that was made
from it holds. Exit code 1 if that is not how it came.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from backstop.core.checkpoint import Usage
from backstop.errors import BackstopError
from backstop.mesh.judging import Seen
from backstop.mesh.recovering import Recovery
from examples.evidence_mesh.desk import ACTION, pins_of_today
from examples.evidence_mesh.keeping import keep
from examples.evidence_mesh.opening import LATE_S, OTHERWISE, opened, quiet
from examples.evidence_mesh.outside import World

ALIKE: Final = "340 shifts, rate=0.71"


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
    """Play it twice, and say how it went; or leave one run to be recovered."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave a run in this folder")
    kept: Path | None = parser.parse_args().keep
    quiet()
    try:
        sys.stdout.write(text() if kept is None else keep(kept))
    except BackstopError as error:
        print(f"error[{error.slug}]: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
