"""The four agents of the evidence desk, what they see of the world, and the one thing they do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from google.adk.agents import LlmAgent, SequentialAgent

import backstop
from examples.evidence_mesh.outside import WORLD
from examples.evidence_mesh.scripted import Scripted

AGENTS: Final = ("scout", "statistician", "skeptic", "orchestrator")


@backstop.evidence(ttl=timedelta(hours=1), source="feed")
def feed() -> str:
    """What the machines say now."""
    return WORLD.get().feed


@backstop.evidence(ttl=timedelta(seconds=200), source="history")
def history() -> str:
    """A snapshot of all shifts so far."""
    return WORLD.get().history


def withdraw(finding: str) -> None:
    """Takes a published finding back."""
    WORLD.get().published.remove(finding)


@backstop.effect(identity=("line",), undo=withdraw)
def publish_action(line: str, finding: str) -> dict[str, str]:
    """Publishes what is to be done about a line."""
    WORLD.get().published.append(finding)
    return {"line": line, "status": "published"}


def _scout(_: Any) -> str:
    return f"Say what is worth a look in the feed: {feed()}"


def _statistician(context: Any) -> str:
    seen = history()
    return f"Give the base rate for: {context.state['scouted']} History: {seen}"


def _last_word(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> None:
    """Whatever came of the action, nobody has to put it in words."""
    tool_context.actions.skip_summarization = True


def desk(agents: tuple[str, ...] = AGENTS) -> SequentialAgent:
    """The desk with these of its agents, in their order."""
    made = {
        "scout": _agent("scout", _scout, output_key="scouted"),
        "statistician": _agent("statistician", _statistician, output_key="weighed"),
        "skeptic": _agent("skeptic", "Doubt {weighed} of {scouted}", output_key="doubted"),
        "orchestrator": _agent(
            "orchestrator",
            "Publish what follows from {weighed} {doubted} for {scouted}",
            tools=[publish_action],
            after_tool_callback=_last_word,
        ),
    }
    return SequentialAgent(name="desk", sub_agents=[made[name] for name in agents])


def _agent(name: str, instruction: Any, **more: Any) -> LlmAgent:
    return LlmAgent(
        name=name,
        model=Scripted(model=f"scripted-{name}", agent=name),
        instruction=instruction,
        include_contents="none",
        disallow_transfer_to_parent=True,
        disallow_transfer_to_peers=True,
        **more,
    )
