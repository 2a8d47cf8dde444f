"""The folder that databases live in, and what its disk takes for one durable write."""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path
from time import perf_counter
from typing import Final

_PROBES: Final = 15
_BLOCK: Final = b"\0" * 4096
_FORGETFUL: Final = frozenset({"tmpfs", "ramfs", "devtmpfs", "overlay"})


def sync_ms(folder: Path) -> float:
    """Median milliseconds of a 4 KiB write and its fdatasync, appended to a file in `folder`."""
    path = folder / "sync.probe"
    spent = []
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        for _ in range(_PROBES):
            start = perf_counter()
            os.write(file, _BLOCK)
            os.fdatasync(file)
            spent.append((perf_counter() - start) * 1000)
    finally:
        os.close(file)
        path.unlink()
    return statistics.median(spent)


def filesystem(folder: Path) -> str:
    """The kind of filesystem that holds `folder`, and where it is mounted."""
    best, kind = Path("/"), "unknown"
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, mounted, what = line.split(maxsplit=3)[:3]
        at = Path(mounted.replace(r"\040", " "))
        if folder.absolute().is_relative_to(at) and len(at.parts) >= len(best.parts):
            best, kind = at, what
    return f"{kind} at {best}"


def warn_if_forgetful(folder: Path) -> None:
    """Say so where a durable write costs nothing, because it is none."""
    if filesystem(folder).split()[0] in _FORGETFUL:
        print(
            f"WARNING: {folder} is on {filesystem(folder)}: syncs are not what they seem",
            file=sys.stderr,
        )
