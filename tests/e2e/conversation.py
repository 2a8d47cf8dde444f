"""A driver small enough to read at once: scripted answers, everything asked is kept."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from backstop.adapters.bounds import Limits
from backstop.adapters.process import ProcessSandbox
from backstop.core.canon import parse
from backstop.replay import wire
from backstop.replay.bundle import MODULE, write_bundle
from backstop.replay.reader import read_message

AGENTS = Path(__file__).parents[1] / "agents"
AT = "2026-01-05T09:00:00Z"

Answer = Callable[[wire.IntentAsked], dict[str, Any]]


def call(name: str, **args: object) -> dict[str, Any]:
    return {"function_call": {"name": name, "args": args}}


def response(*parts: Mapping[str, object]) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": list(parts)}, "finish_reason": "STOP"}


def text(said: str) -> dict[str, Any]:
    return {"text": said}


def message(said: str) -> dict[str, Any]:
    return {"role": "user", "parts": [text(said)]}


@dataclass
class Heard:
    """All that a harness said."""

    ready: wire.Ready | None = None
    models: list[wire.ModelAsked] = field(default_factory=list)
    intents: list[wire.IntentAsked] = field(default_factory=list)
    steps: list[wire.StepDone] = field(default_factory=list)
    runs: list[wire.RunDone] = field(default_factory=list)
    escapes: list[wire.Escape] = field(default_factory=list)
    faults: list[wire.Fault] = field(default_factory=list)
    noise: str = ""

    @property
    def asked(self) -> list[tuple[str, Any]]:
        return [(one.tool, parse(bytes(one.args))) for one in self.intents]


@dataclass
class Driver:
    """Plays `runs` runs of the same `steps`; `models` are the answers in each, in order.

    A step is a message, or makes one of what was heard so far.
    """

    agent: Path
    steps: Sequence[object] = (message("go"),)
    models: Sequence[dict[str, Any]] = ()
    runs: int = 1
    shuffle: int | None = None
    answer: Answer = lambda _: {"result": {"ok": True}}
    limits: Limits = field(default_factory=Limits)
    environment: Mapping[str, str] = field(default_factory=dict)
    barred: bool = True
    begin: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> Heard:
        sandbox = ProcessSandbox(
            bundle=write_bundle,
            module=MODULE,
            limits=self.limits,
            environment=self.environment,
            barred=self.barred,
        )
        heard = Heard()
        self._begin_run()
        with sandbox.start(self.agent) as conversation:
            held: list[wire.IntentAsked] = []
            while (line := conversation.receive()) is not None:
                said = read_message(line)
                if isinstance(said, wire.IntentAsked) and self.shuffle is not None:
                    heard.intents.append(said)
                    held.append(said)
                    if len(held) < self.shuffle:
                        continue
                    random.Random(7).shuffle(held)
                    replies: list[wire.FromDriver] = [self._reply(one) for one in held]
                    held.clear()
                else:
                    replies = self._hear(heard, said)
                for reply in replies:
                    conversation.send(msgspec.json.encode(reply) + b"\n")
        heard.noise = conversation.noise
        return heard

    def _hear(self, heard: Heard, said: wire.FromHarness) -> list[wire.FromDriver]:
        match said:
            case wire.Ready():
                heard.ready = said
                return [self._next_run(heard, said.id)]
            case wire.RunReady():
                return [self._next_step(heard, said.id)]
            case wire.StepDone():
                heard.steps.append(said)
                return [self._next_step(heard, said.id)]
            case wire.RunDone():
                heard.runs.append(said)
                return [self._next_run(heard, said.id)]
            case wire.ModelAsked():
                heard.models.append(said)
                answer = next(self._models, None)
                missing = "" if answer is not None else "end_of_record"
                return [wire.ModelReply(id=said.id, response=answer, missing=missing)]
            case wire.IntentAsked():
                heard.intents.append(said)
                return [self._reply(said)]
            case wire.Escape():
                heard.escapes.append(said)
            case wire.Fault():
                heard.faults.append(said)
            case wire.ModelGiven():
                raise AssertionError("nobody asked for a whole request")
        return []

    def _reply(self, said: wire.IntentAsked) -> wire.IntentReply:
        return wire.IntentReply(id=said.id, **self.answer(said))

    def _begin_run(self) -> None:
        self._models: Iterator[dict[str, Any]] = iter(self.models)
        self._left = list(self.steps)

    def _next_run(self, heard: Heard, number: int) -> wire.FromDriver:
        done = len(heard.runs)
        if done >= self.runs:
            return wire.Quit(id=number)
        self._begin_run()
        return wire.BeginRun(
            id=number, run=f"run-{done}", app="", user="u", at=AT, **dict(self.begin)
        )

    def _next_step(self, heard: Heard, number: int) -> wire.FromDriver:
        if not self._left:
            return wire.EndRun(id=number)
        name = f"step-{len(self.steps) - len(self._left)}"
        step = self._left.pop(0)
        said = step(heard) if callable(step) else step
        return wire.BeginStep(id=number, step=name, at=AT, seed=11, message=said)
