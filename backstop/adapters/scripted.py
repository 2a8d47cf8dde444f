"""A candidate told as a Python generator: the sandbox's contract without a process.

For tests of whoever talks to candidates. A script is called once for each step with what
begins it; it yields what it asks for (or a list, to ask in parallel), and gets the answers
back. What it raises ends its step as a fault, as it would in a real candidate.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from backstop.errors import SandboxError

Message: TypeAlias = dict[str, Any]
Script: TypeAlias = Callable[
    [Mapping[str, Any], dict[str, Any]], Generator[Message | list[Message], Any, None]
]
"""``script(step, state)``: `step` is what begins it, `state` the session's, to be changed."""

_READY: Final[Message] = {
    "t": "ready",
    "protocol": 1,
    "adk": "0",
    "python": "3",
    "app": "scripted",
    "agents": [],
    "tools": [],
}


def effect(tool: str, **args: object) -> Message:
    """The message that asks for a call."""
    return {"t": "intent", "tool": tool, "args": args}


def ask(agent: str, ordinal: int = 0, **digests: str) -> Message:
    """The message that asks a model, with the digests that are given and fillers for the rest."""
    parts = dict.fromkeys(("instruction", "tools", "contents", "settings"), "-")
    return {"t": "model", "agent": agent, "ordinal": ordinal, **parts, **digests}


def tool(name: str, **seen: object) -> Message:
    """A tool as a candidate tells of it."""
    return {"agent": "", "tool": name, **seen}


@dataclass(frozen=True, kw_only=True)
class ScriptedSandbox:
    """Starts the same script each time; `tools` are what it says it has.

    `instead` are raw lines that it says after its first word in place of playing, then leaves.
    """

    script: Script
    tools: Sequence[Message] = ()
    escapes: Sequence[Message] = ()
    instead: Iterable[bytes] | None = None
    started: list[Path] = field(default_factory=list)

    def start(self, agent: Path) -> ScriptedConversation:
        """Begin a conversation; `agent` is only noted in `started`."""
        self.started.append(agent)
        ready = {**_READY, "tools": list(self.tools), "escapes": list(self.escapes)}
        return ScriptedConversation(self.script, ready, self.instead)


class ScriptedConversation:
    """Plays one script, answering each line at once."""

    def __init__(
        self, script: Script, ready: Message, instead: Iterable[bytes] | None = None
    ) -> None:
        self._script = script
        self._lines: deque[bytes] = deque()
        self._number = 0
        self._instead = instead
        self._run: Message = {}
        self._state: dict[str, Any] = {}
        self._step: Message = {}
        self._play: Generator[Message | list[Message], Any, None] | None = None
        self._awaited: dict[int, int] = {}
        self._answers: list[Any] = []
        self._is_parallel = False
        self.closed = False
        self._say(ready)

    def send(self, line: bytes) -> None:
        """Take a line. Raises `SandboxError` once closed."""
        if self.closed:
            raise SandboxError("the scripted candidate is gone", slug="agent-exited")
        message = json.loads(line)
        if self._instead is not None:
            self._lines.extend(self._instead)
            self._instead = ()
            return
        match message["t"]:
            case "run":
                self._run, self._state = message, dict(message.get("state") or {})
                self._say({"t": "run_ready"})
            case "step":
                self._step = message
                self._play = self._script(message, self._state)
                self._go_on(None)
            case "end_run":
                self._say({"t": "run_done", "run": self._run["run"], "events": 0, "digest": ""})
            case "quit":
                self.closed = True
            case _:
                self._answered(message)

    def receive(self) -> bytes | None:
        """The next line; None when there is no more, since nobody else could add one."""
        return self._lines.popleft() if self._lines else None

    def close(self) -> None:
        """End it."""
        self.closed = True

    def _say(self, message: Message) -> int:
        self._number += 1
        self._lines.append(json.dumps({**message, "id": self._number}).encode())
        return self._number

    def _answered(self, reply: Message) -> None:
        if reply.get("missing"):
            ended = reply["missing"] == "end_of_record"
            self._end("end_of_record" if ended else "unanswered")
            return
        self._answers[self._awaited.pop(reply["id"])] = reply
        if not self._awaited:
            self._go_on(list(self._answers) if self._is_parallel else self._answers[0])

    def _go_on(self, answer: object) -> None:
        if self._play is None:
            return
        try:
            asked = self._play.send(answer)
            while isinstance(asked, dict) and asked["t"] in {"escape", "fault"}:
                self._lines.append(json.dumps(asked).encode())
                asked = self._play.send(None)
        except StopIteration:
            self._end("done")
        except Exception as error:  # noqa: BLE001 - a script stands for somebody's code
            self._end("fault", error=f"{type(error).__name__}: {error}")
        else:
            self._is_parallel = isinstance(asked, list)
            asks = asked if isinstance(asked, list) else [asked]
            self._answers = [None] * len(asks)
            self._awaited = {self._say(one): place for place, one in enumerate(asks)}

    def _end(self, outcome: str, error: str = "") -> None:
        self._play = None
        self._awaited = {}
        done = {"t": "step_done", "step": self._step["step"], "outcome": outcome, "error": error}
        self._say({**done, "pending": self._state.pop("$pending", [])})
