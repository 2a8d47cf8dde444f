# ruff: noqa: ANN401 - the framework's values are of any type
"""Says again what kept steps said, in place of the agents and models that said it.

For an attempt that makes anew only what does not hold: the recorder has to be told of the same
steps (`MeshPlugin(kept=...)`), or it takes what is said again for something new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NoReturn

import msgspec
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from backstop.core.trust import State
from backstop.errors import BackstopError
from backstop.mesh.definitions import path_of
from backstop.mesh.judging import Seen
from backstop.mesh.trail import Left
from backstop.mesh.trails import Kept


class HeldBack(Exception):
    """Something was about to be done where only what leads to it is made anew."""


class ReusePlugin(BasePlugin):
    """Stands behind guard and recorder, and answers for what is `kept` of the run's step `trigger`.

    Agents in `skipped` are not run: they say what their last turn said. Of any other agent the
    kept turns are said again without its model. The attempt ends, with `HeldBack`, where an
    `@effect` is about to be called, unless it is `acting`, and where a model is about to be
    asked, unless it is `asking`; `held` tells of it.
    """

    def __init__(
        self,
        trigger: str,
        kept: Mapping[str, Left],
        *,
        skipped: Collection[str],
        asking: bool = True,
        acting: bool = True,
    ) -> None:
        super().__init__("backstop_reuse")
        self.held = False
        self._trigger = trigger
        self._kept = kept
        self._skipped = frozenset(skipped)
        self._asking = asking
        self._acting = acting
        self._turns: Counter[str] = Counter()

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> Any:  # noqa: ARG002 - the framework's signature
        """Say what the agent said last time, if all of it is kept. Raises `BackstopError`."""
        path = path_of(agent)
        if path not in self._skipped:
            return None
        turns = f"{self._trigger}/{path}#"
        said = [left for step, left in self._kept.items() if step.startswith(turns)]
        said = [left for left in said if "said" in left]
        if not said:
            raise BackstopError(f"{path} said nothing that is kept: it has to be run again")
        return content_of(said[-1])

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:  # noqa: ARG002 - the framework's signature
        """Say the turn again, if it is kept."""
        path = path_of(callback_context._invocation_context.agent)  # noqa: SLF001 - no public way to it
        left = self._kept.get(f"{self._trigger}/{path}#{self._turns[path]}")
        self._turns[path] += 1
        if left is not None:
            return LlmResponse(content=content_of(left))
        if not self._asking:
            self._hold(f"the model of {path}")
        return None

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:  # noqa: ARG002 - the framework's signature
        """End the attempt before an action, if that is to wait."""
        if not self._acting and hasattr(getattr(tool, "func", None), "__backstop_effect__"):
            self._hold(tool.name)

    def _hold(self, what: str) -> NoReturn:
        self.held = True
        raise HeldBack(what)


def content_of(left: Left) -> types.Content:
    """What a step said, as the framework has it. Raises `BackstopError` if it cannot be made."""
    try:
        parts = [types.Part.model_validate(made["form"]) for made in left["parts"]]
    except (KeyError, ValueError) as error:
        raise BackstopError(
            f"what {left.get('agent', 'a step')} said cannot be said again "
            f"({type(error).__name__}): it has to be run again"
        ) from error
    return types.Content(role="model", parts=parts)


def kept_of(seen: Seen, payloads: Kept) -> dict[str, Left]:
    """What the steps that hold left, in order: nothing else may be said again.

    What is not there any more, or cannot be read, is not kept.
    """
    order, _ = seen.graph.order()
    verified = [one.step for one in order if seen.verdicts[one.step].state is State.VERIFIED]
    found = {step: payloads.get(seen.graph[step].output) for step in verified}
    return {step: msgspec.json.decode(kept) for step, kept in found.items() if kept is not None}


def state_of(lefts: Iterable[Left]) -> dict[str, Any]:
    """The session's state as these steps, in order, left it."""
    return {
        key: held["value"]
        for left in lefts
        for key, held in left.get("state", {}).items()
        if "value" in held
    }
