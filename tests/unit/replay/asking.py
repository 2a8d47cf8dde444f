"""One pass over one run, asked by hand: what a harness would ask, without a harness."""

from __future__ import annotations

from typing import Any

import msgspec

from backstop.core.canon import canonical
from backstop.core.declaration import Namespace
from backstop.core.events import RequestDigests
from backstop.core.intents import Intent
from backstop.core.keying import Rules
from backstop.core.runs import recorded_runs
from backstop.replay.answers import Answers, Recording
from backstop.replay.calls import known_calls
from backstop.replay.models import Trust
from backstop.replay.wire import IntentAsked, IntentReply, ModelAsked, ModelReply
from tests.dsl import Scenario, scenario


def same(name: str) -> RequestDigests:
    """Digests of a request called `name`."""
    return RequestDigests(instruction="i", tools="t", contents=name, settings="s")


class Asking:
    """Plays the candidate in the replay of one run of a scenario."""

    def __init__(
        self, told: Scenario | str, run: str = "r1", *, seed: int = 1, trust: Trust | None = None
    ) -> None:
        told = scenario(told) if isinstance(told, str) else told
        runs, _ = recorded_runs(told.events)
        declared = {
            tool: told.header.declarations[digest] for tool, digest in told.header.tools.items()
        }
        rules = Rules(
            namespace=Namespace(agent=told.header.agent),
            recorded=told.header.declarations,
            declared=declared,
            candidate=declared,
            replayed=True,
        )
        elsewhere = [
            call
            for other in runs.values()
            if other.id != run
            for call in known_calls(other.id, other.steps, rules)
            if call.declaration.scope is not None and call.declaration.scope.value == "agent"
        ]
        self.run = runs[run]
        self.answers = Answers(
            Recording(
                run=self.run, rules=rules, trust=trust or Trust(unknown=True), elsewhere=elsewhere
            ),
            seed=seed,
        )
        self._id = 0

    def step(self, name: str) -> Asking:
        """Go to a step."""
        self.answers.begin(next(step for step in self.run.steps if step.id == name))
        return self

    def reply(self, tool: str, call: str = "", **args: Any) -> IntentReply:
        """Ask for a call and get the whole reply."""
        self._id += 1
        asked = IntentAsked(
            id=self._id, tool=tool, args=msgspec.Raw(canonical(args).encode()), call=call
        )
        return self.answers.call(asked)

    def call(self, tool: str, **args: Any) -> Any:
        """Ask for a call and get its result, or the type of its error."""
        reply = self.reply(tool, **args)
        if reply.missing or reply.error_type:
            return reply.missing or reply.error_type
        return msgspec.json.decode(msgspec.json.encode(reply.result))

    def model(
        self, agent: str = "desk", ordinal: int = 0, request: RequestDigests | None = None
    ) -> ModelReply:
        """Ask the model."""
        self._id += 1
        found = request or same("any")
        return self.answers.model(
            ModelAsked(id=self._id, agent=agent, ordinal=ordinal, **msgspec.structs.asdict(found))
        )

    @property
    def intents(self) -> list[Intent]:
        """What was asked for."""
        return self.answers.intents()
