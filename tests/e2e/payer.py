"""A process that pays once, for tests that need more than one or want it killed.

    python -m tests.e2e.payer FOLDER [--at FILE] [--die]

What goes out is a line in FOLDER/out. `--at` waits until FILE is there; `--die` kills the
process after the payment and before its result is stored.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

from tests.e2e.till import Till, calls, says, told


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--at", type=Path)
    parser.add_argument("--die", action="store_true")
    given = parser.parse_args()

    def pay(order: str) -> dict[str, str]:
        """Pays."""
        out = os.open(given.folder / "out", os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        os.write(out, f"pay {order}\n".encode())
        if given.die:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.3)  # long enough to be met by whoever is a little later
        return {"paid": order}

    till = Till(folder=given.folder)
    root = till.agent(calls(("pay", {"order": "7"})), says("done"), tools=[pay])

    async def go() -> list[object]:
        await till.session()
        runner = till.runner(root)
        return told(await till.say(runner, "pay"), "pay")

    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while given.at is not None and not given.at.exists():
        time.sleep(0.001)
    sys.stdout.write(json.dumps(asyncio.run(go())))


if __name__ == "__main__":
    main()
