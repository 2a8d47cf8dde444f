"""What every sandbox that speaks in lines has in common: its bounds, and its words for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from backstop.errors import SandboxError, WireError

_WHAT_NEXT: Final = "find the loop or the wait in it, or raise sandbox.wall if it is only slow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a candidate may take: bytes, open files, and seconds of real time.

    `line` bounds one line of the wire, `said` all lines of a conversation together and
    `printed` all that the candidate prints beside it, of which the last `noise` bytes are kept.
    `variables` are what it finds in its environment beside what every candidate does.
    """

    line: int = 16 << 20
    said: int = 1 << 30
    printed: int = 256 << 20
    memory: int = 4 << 30
    files: int = 1024
    file_bytes: int = 256 << 20
    noise: int = 64 << 10
    silence_s: float = 60.0
    wall_s: float = 1800.0
    variables: Mapping[str, str] = field(default_factory=dict)


def silent(agent: Path, limits: Limits) -> SandboxError:
    """The candidate was ended since it said nothing for too long."""
    return SandboxError(
        f"{agent}: the candidate said nothing for {limits.silence_s:g} s and was ended; "
        f"{_WHAT_NEXT}",
        slug="agent-hangs",
    )


def out_of_time(agent: Path, limits: Limits) -> SandboxError:
    """The candidate was ended since its whole time was over."""
    return SandboxError(
        f"{agent}: the candidate was ended after {limits.wall_s:g} s, its whole time; {_WHAT_NEXT}",
        slug="agent-hangs",
    )


def flooding(agent: Path, limits: Limits) -> SandboxError:
    """The candidate was ended since it said or printed too much."""
    return SandboxError(
        f"{agent}: the candidate was ended since it said more than {limits.said} bytes or "
        f"printed more than {limits.printed}; find the loop that prints",
        slug="agent-floods",
    )


def gone(agent: Path) -> SandboxError:
    """The candidate's process is not there any more, and nobody ended it."""
    return SandboxError(f"{agent}: the candidate's process is gone", slug="agent-exited")


class Closing(ABC):
    """Something that a `with` block closes at its end."""

    @abstractmethod
    def close(self) -> None:
        """End it, and leave nothing behind."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class LineSplitter:
    """Cuts a stream into lines, never holding more than one line's worth of it."""

    def __init__(self, max_line: int) -> None:
        self._max_line = max_line
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes. Raises `WireError` for one that is too long."""
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += rest
        if len(self._rest) > self._max_line or any(len(line) > self._max_line for line in lines):
            raise WireError(f"the harness sent a line of more than {self._max_line} bytes")
        return lines

    def finish(self) -> None:
        """The stream is over. Raises `WireError` if it ended in the middle of a line."""
        if self._rest:
            raise WireError("the harness ended in the middle of a line")


def surroundings(*, path: str, scratch: str, world: int = 0) -> dict[str, str]:
    """The environment of a candidate in any sandbox: `path` is what it imports from first.

    In another `world` sets are gone through in another order.
    """
    return {
        "ADK_DISABLE_LOAD_DOTENV": "1",
        "HOME": scratch,
        "LC_ALL": "C.UTF-8",
        "OTEL_SDK_DISABLED": "true",
        "PYTHONHASHSEED": str(world),
        "PYTHONPATH": path,
        "PYTHONUNBUFFERED": "1",
        "PYTHONUTF8": "1",
        "PYTHONWARNINGS": "ignore",
        "TMPDIR": f"{scratch}/tmp",  # noqa: S108 - a folder of the candidate's own
        "TZ": "UTC",
    }


def harness_options(
    limits: Limits, *, agent: str, start: str, scratch: str, world: int = 0
) -> list[str]:
    """The harness's command line: whom to load, where it may write, and how much it may take.

    `start` is the folder that the candidate is in once the barrier stands. `world` says which
    time and chance it shows: 0 is the recorded one.
    """
    return [
        *("--agent", agent, "--start", start, "--scratch", scratch),
        *("--memory", str(limits.memory), "--files", str(limits.files)),
        *("--file-bytes", str(limits.file_bytes)),
        *(("--world", str(world)) if world else ()),
        *(f"--variable={name}={value}" for name, value in sorted(limits.variables.items())),
    ]
