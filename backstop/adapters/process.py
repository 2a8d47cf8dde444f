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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from backstop.adapters.bounds import (
    Closing,
    Limits,
    LineSplitter,
    flooding,
    gone,
    harness_options,
    out_of_time,
    silent,
    surroundings,
)
from backstop.adapters.project import project_of
from backstop.errors import SandboxError

_CHUNK: Final = 1 << 18
_GRACE_S: Final = 2.0
_PASSED_ON: Final = ("PATH", "LD_LIBRARY_PATH", "SSL_CERT_FILE")
"""Variables of ours that a candidate may see. None of them holds a secret, or a verdict."""


def interpreter(python: str) -> str:
    """The interpreter that is meant, wherever it is started; a link to one stays a link."""
    return os.path.normpath(Path(python).absolute()) if "/" in python else python


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSandbox:
    """Starts candidates.

    `bundle` writes what the harness needs into a folder, and `module` is what `python` then
    runs; `python` is an interpreter with the candidate's packages, by its name or its path from
    here. `checkouts` are those that agents lie in, as far as they are known: they bound an
    agent's project. `environment` is added to the candidate's own small environment. `barred`
    False installs nothing in the kernel: for tests of ours only. In another `world` than 0
    candidates meet another time, chance and order.
    """

    bundle: Callable[[Path], None]
    module: str
    python: str = sys.executable
    limits: Limits = field(default_factory=Limits)
    checkouts: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    barred: bool = True
    world: int = 0

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
                # Not the candidate's project yet: nothing of ours may be found there.
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
        command = [interpreter(self.python), "-P", "-s", "-m", self.module]
        start = project_of(agent, self.checkouts)
        where = {"agent": str(agent.absolute()), "start": str(start), "scratch": str(scratch)}
        command += harness_options(self.limits, **where, world=self.world)
        return command if self.barred else [*command, "--open"]

    def _environment(self, bundle: Path, scratch: Path) -> dict[str, str]:
        ours = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return {
            **ours,
            **self.environment,
            **surroundings(path=str(bundle), scratch=str(scratch), world=self.world),
        }


class Conversation(Closing):
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
        self._said = 0
        self._out_of_time, self._floods = threading.Event(), threading.Event()
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
                raise silent(self._agent, self._limits)
            chunk = os.read(self._out.fileno(), _CHUNK)
            if not chunk:
                self._check_the_end()
                return None
            self._said += len(chunk)
            if self._said > self._limits.said:
                self._flood()
                raise self._ended()
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
        if self._out_of_time.is_set() or self._floods.is_set():
            raise self._ended()
        self._splitter.finish()

    def _ended(self) -> SandboxError:
        if self._out_of_time.is_set():
            return out_of_time(self._agent, self._limits)
        if self._floods.is_set():
            return flooding(self._agent, self._limits)
        return gone(self._agent)

    def _run_out(self) -> None:
        self._out_of_time.set()
        self.kill()

    def _flood(self) -> None:
        self._floods.set()
        self.kill()

    def _collect_noise(self) -> None:
        """Keep the end of what the candidate prints; megabytes of it must not fill a pipe."""
        printed = 0
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._err.fileno(), _CHUNK):
                printed += len(chunk)
                self._noise += chunk
                del self._noise[: -self._limits.noise]
                if printed > self._limits.printed:
                    self._flood()
