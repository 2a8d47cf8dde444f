"""The `process` sandbox: a candidate in a local process that the kernel holds back.

This side starts it with an environment of its own, passes lines as they are, and ends it:
when it is silent for too long, has had its time, says too much, or when we are done.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from backstop.errors import SandboxError, WireError

_CHUNK: Final = 1 << 18
_GRACE_S: Final = 2.0
_PASSED_ON: Final = ("PATH", "LD_LIBRARY_PATH", "SSL_CERT_FILE")
"""Variables of ours that a candidate may see. None of them holds a secret, or a verdict."""
_WHAT_NEXT: Final = "find the loop or the wait in it, or raise sandbox.wall if it is only slow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a candidate may take: bytes, open files, and seconds of real time."""

    line: int = 16 << 20
    memory: int = 4 << 30
    files: int = 1024
    file_bytes: int = 256 << 20
    noise: int = 64 << 10
    silence_s: float = 60.0
    wall_s: float = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSandbox:
    """Starts candidates.

    `bundle` writes what the harness needs into a folder, and `module` is what `python` then
    runs; `python` is an interpreter with the candidate's packages. `environment` is added to
    the candidate's own small environment. `barred` False installs nothing in the kernel: for
    tests of ours only.
    """

    bundle: Callable[[Path], None]
    module: str
    python: str = sys.executable
    limits: Limits = field(default_factory=Limits)
    environment: Mapping[str, str] = field(default_factory=dict)
    barred: bool = True

    def start(self, agent: Path) -> Conversation:
        """Start the harness on the agent in folder `agent`; it speaks first.

        Raises `SandboxError` if the interpreter cannot be started.
        """
        home = Path(tempfile.mkdtemp(prefix="backstop-"))
        try:
            bundle, scratch = home / "bundle", home / "scratch"
            self.bundle(bundle)
            (scratch / "tmp").mkdir(parents=True)
            process = subprocess.Popen(  # noqa: S603 - the interpreter that the user chose
                self._command(agent, scratch),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=scratch,
                env=self._environment(bundle, scratch),
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            shutil.rmtree(home, ignore_errors=True)
            raise SandboxError(
                f"cannot start {self.python}: {error}; check sandbox.python"
            ) from None
        except BaseException:
            # Also when interrupted: the folder is nobody's until the conversation owns it.
            shutil.rmtree(home, ignore_errors=True)
            raise
        return Conversation(process=process, home=home, limits=self.limits, agent=agent)

    def _command(self, agent: Path, scratch: Path) -> list[str]:
        command = [self.python, "-P", "-s", "-m", self.module]
        command += ["--agent", str(agent.absolute()), "--scratch", str(scratch)]
        command += ["--memory", str(self.limits.memory), "--files", str(self.limits.files)]
        command += ["--file-bytes", str(self.limits.file_bytes)]
        return command if self.barred else [*command, "--open"]

    def _environment(self, bundle: Path, scratch: Path) -> dict[str, str]:
        ours = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return {
            **ours,
            **self.environment,
            "ADK_DISABLE_LOAD_DOTENV": "1",
            "HOME": str(scratch),
            "LC_ALL": "C.UTF-8",
            "OTEL_SDK_DISABLED": "true",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": str(bundle),
            "PYTHONUNBUFFERED": "1",
            "PYTHONUTF8": "1",
            "PYTHONWARNINGS": "ignore",
            "TMPDIR": str(scratch / "tmp"),
            "TZ": "UTC",
        }


class Conversation:
    """A running harness: lines to it, lines from it, and its end. Use it in a `with` block."""

    def __init__(
        self, *, process: subprocess.Popen[bytes], home: Path, limits: Limits, agent: Path
    ) -> None:
        self._process = process
        self._agent = agent
        self._home = home
        self._limits = limits
        self._splitter = LineSplitter(limits.line)
        self._lines: deque[bytes] = deque()
        self._out_of_time = threading.Event()
        self._noise = bytearray()
        assert process.stdin is not None  # noqa: S101 - all three are pipes
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        self._in, self._out, self._err = process.stdin, process.stdout, process.stderr
        self._timer = threading.Timer(limits.wall_s, self._run_out)
        self._timer.daemon = True
        self._timer.start()
        self._listener = threading.Thread(target=self._collect_noise, daemon=True)
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def send(self, line: bytes) -> None:
        """Send one line, newline included. Raises `SandboxError` if the harness is gone."""
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(self._in.fileno(), view) :]
        except OSError:
            raise self._ended() from None

    def receive(self) -> bytes | None:
        """The next line, without its newline; None once the harness has left.

        Raises `WireError` for a line beyond the limit or without an end, and `SandboxError`
        (slug ``agent-hangs``) for silence beyond the limit or a candidate out of time.
        """
        while not self._lines:
            ready, _, _ = select.select([self._out], [], [], self._limits.silence_s)
            if not ready:
                self.kill()
                raise SandboxError(
                    f"{self._agent}: the candidate said nothing for {self._limits.silence_s:g} s "
                    f"and was ended; {_WHAT_NEXT}",
                    slug="agent-hangs",
                )
            chunk = os.read(self._out.fileno(), _CHUNK)
            if not chunk:
                self._check_the_end()
                return None
            self._lines.extend(self._splitter.feed(chunk))
        return self._lines.popleft()

    @property
    def noise(self) -> str:
        """The last that the candidate printed, made safe to show; never trust it."""
        return bytes(self._noise).decode("utf-8", "backslashreplace")

    def kill(self) -> None:
        """End the candidate and every process it started, at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the candidate, wait for it, and remove its scratch folder."""
        self._timer.cancel()
        with contextlib.suppress(OSError):
            self._in.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        # The group outlives its first process if the candidate left others behind.
        self.kill()
        self._process.wait()
        self._listener.join(_GRACE_S)
        self._out.close()
        self._err.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def _check_the_end(self) -> None:
        if self._out_of_time.is_set():
            raise self._ended()
        if self._splitter.unfinished:
            raise WireError("the harness ended in the middle of a line")

    def _ended(self) -> SandboxError:
        if self._out_of_time.is_set():
            return SandboxError(
                f"{self._agent}: the candidate was ended after {self._limits.wall_s:g} s, its "
                f"whole time; {_WHAT_NEXT}",
                slug="agent-hangs",
            )
        return SandboxError(f"{self._agent}: the candidate's process is gone", slug="agent-exited")

    def _run_out(self) -> None:
        self._out_of_time.set()
        self.kill()

    def _collect_noise(self) -> None:
        """Keep the end of what the candidate prints; megabytes of it must not fill a pipe."""
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._err.fileno(), _CHUNK):
                self._noise += chunk
                del self._noise[: -self._limits.noise]


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

    @property
    def unfinished(self) -> bytes:
        """What came after the last newline."""
        return bytes(self._rest)
