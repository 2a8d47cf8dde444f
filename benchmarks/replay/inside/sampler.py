"""Says where a run's CPU time goes, by looking at its stack every other millisecond.

A benchmark copies this into the harness. A moment belongs to whoever is innermost, the
framework, the harness or the event loop between them; and of the framework's, to its
building of contents if that is somewhere on the stack.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import TypeAlias

Play: TypeAlias = Callable[[object, dict[str, object]], dict[str, object]]

_EVERY_S = 0.002
_CPU = time.process_time  # before the clock is frozen
_BUILDERS = ("_contents.py", "contents.py")


def sampled(play: Play) -> Play:
    """`play`, which says on standard error how its time was spent."""

    def measured(run: object, begin: dict[str, object]) -> dict[str, object]:
        seen: Counter[str] = Counter()

        def look(_number: int, frame: FrameType | None) -> None:
            seen[_owner(frame)] += 1

        signal.signal(signal.SIGPROF, look)
        signal.setitimer(signal.ITIMER_PROF, _EVERY_S, _EVERY_S)
        start = _CPU()
        done = play(run, begin)
        spent = _CPU() - start
        signal.setitimer(signal.ITIMER_PROF, 0)
        total = seen.total() or 1
        shares = " ".join(f"{name}={spent * seen[name] / total:.3f}" for name in _OWNERS)
        os.write(2, f"SPENT total={spent:.3f} {shares}\n".encode())
        return done

    return measured


_OWNERS = ("harness", "contents", "framework", "loop")


def _owner(frame: FrameType | None) -> str:
    owner = "harness"
    while frame is not None:
        file = frame.f_code.co_filename
        if "backstop_harness" in file:
            return owner
        if "/google/adk/" in file:
            owner = "framework"
            if "llm_flows" in file and file.endswith(_BUILDERS):
                return "contents"
        elif frame.f_code.co_name == "_run_once" and owner == "harness":
            owner = "loop"
        frame = frame.f_back
    return "framework"
