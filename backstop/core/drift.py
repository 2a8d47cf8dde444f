"""How far requests differ from the recorded ones, by their parts, and that in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

PARTS: Final = ("instruction", "tools", "contents", "settings")
"""The parts of a request that are digested apart, in the order in which they are named."""


def by_part(drifted: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """In how many agents each part of the requests changed, parts that did not left out."""
    counted = {part: sum(part in parts for parts in drifted.values()) for part in PARTS}
    return {part: agents for part, agents in counted.items() if agents}


def changes(drifted: Mapping[str, Sequence[str]]) -> str:
    """``instruction changed in 3 agents, tools in 1``; empty where nothing did."""
    words: list[str] = []
    for part, agents in by_part(drifted).items():
        noun = "" if words else " agent" if agents == 1 else " agents"
        words.append(f"{part}{'' if words else ' changed'} in {agents:,}{noun}")
    return ", ".join(words)
