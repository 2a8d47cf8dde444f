"""What each way past interception comes to: for a person who asks, and for a verdict (D7).

One table for `backstop doctor`, the gate and `docs/doctor.md`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from backstop.adk.escapes import Way
from backstop.core.intents import Escaped
from backstop.replay.code import Exercised
from backstop.replay.wire import EscapeSeen, Ready

_TOLD_AT_MOST: Final = 25
_SHOWN: Final = 200


class Ruling(StrEnum):
    """How much of a way a replay shows."""

    UNSEEN = "unseen"
    """Nothing: it is never covered."""
    WALLED = "walled"
    """Its code runs behind the walls, and what it tries there is named, if a run reaches it."""
    NOTED = "noted"
    """Nothing, and nothing is claimed of it: it has no effects outside the model's service."""


class Rule(NamedTuple):
    """What is ruled of a way, why, and what a person can do about it."""

    ruling: Ruling
    means: str
    remedy: str


_EFFECT: Final = "wrap what it calls with @effect"

RULES: Final[Mapping[Way, Rule]] = {
    Way.FUNCTION_NODE: Rule(
        Ruling.WALLED,
        "runs code in a node, which is no tool call",
        f"await ctx.run_node(FunctionTool(f), node_input=...), or {_EFFECT}",
    ),
    Way.CUSTOM_AGENT: Rule(
        Ruling.WALLED,
        "runs code of its own, which is no tool call",
        f"{_EFFECT}, or make it a tool",
    ),
    Way.INCLUDE_PLUGINS: Rule(
        Ruling.UNSEEN, "runs without plugins", "AgentTool(agent, include_plugins=True)"
    ),
    Way.OWN_RUNNER: Rule(
        Ruling.WALLED,
        "has a Runner of its own, which has none of the app's plugins",
        "make the agent a sub-agent or an AgentTool, or say plugins=[backstop.Plugin()] there",
    ),
    Way.CODE_EXECUTOR: Rule(
        Ruling.UNSEEN,
        "executes code that a model wrote",
        "make tools of what the code is for, and take the executor away",
    ),
    Way.CALLBACK: Rule(
        Ruling.WALLED, "reaches outside in a callback, which is no tool call", _EFFECT
    ),
    Way.INSTRUCTION_PROVIDER: Rule(
        Ruling.WALLED,
        "reaches outside while it makes its instruction",
        f"read it from the session's state, or {_EFFECT}",
    ),
    Way.TOOLSET: Rule(
        Ruling.UNSEEN,
        "lists its tools only when it is online",
        "record with backstop.Plugin, which keeps what the toolset listed",
    ),
    Way.SERVER_SIDE_TOOL: Rule(
        Ruling.NOTED,
        "is not observable: it runs inside the model's service",
        "none is needed while it only reads; an effect belongs in a tool of your own",
    ),
    Way.REMOTE_MCP: Rule(
        Ruling.UNSEEN,
        "has the model's service call an MCP server",
        "use McpToolset: then the framework calls the server, tool by tool",
    ),
    Way.OWN_LOOP: Rule(
        Ruling.UNSEEN,
        "runs its own loop, out of sight",
        "guard the agent where it runs, and call it by a tool",
    ),
    Way.TOOL_TO_TOOL: Rule(
        Ruling.WALLED,
        "calls a tool from inside a tool: one call is seen, not two",
        "wrap the inner function with @effect",
    ),
    Way.BACKGROUND_TASK: Rule(
        Ruling.WALLED,
        "starts work that goes on when the call has been answered",
        "await it before returning, or make it a tool call of its own",
    ),
    Way.SERVICE: Rule(
        Ruling.UNSEEN,
        "writes to a service that a replay keeps in memory",
        "write it in a tool, or in a function with @effect",
    ),
    Way.IMPORT_TIME: Rule(
        Ruling.WALLED,
        "reaches outside when it is imported",
        "move it into the function that needs it",
    ),
    Way.DIRECT_MODEL: Rule(
        Ruling.WALLED,
        "asks a model that is no agent's: nothing of it is recorded",
        "ask by an agent (AgentTool), or wrap the call with @effect",
    ),
    Way.LIVE_MODE: Rule(
        Ruling.UNSEEN,
        "runs in live mode: what its model says is not recorded",
        "run it by run_async where it has effects",
    ),
    Way.NETWORKED_PLUGIN: Rule(
        Ruling.WALLED,
        "is a plugin that reaches outside",
        "leave it out of the app of the agent that is gated, or wrap what it calls with @effect",
    ),
}
"""Every way has its rule: a test walks them."""

_UNKNOWN: Final = Rule(
    Ruling.UNSEEN, "has a way past interception that this Backstop does not know", "update Backstop"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A way past interception as a person reads it.

    `at` is ``file:line`` from the agent's folder, empty where there is none. What `counts` makes
    coverage incomplete; the rest is good to know. None of the texts is safe to print as it is.
    """

    way: str
    where: str
    detail: str
    at: str
    counts: bool
    quiet: bool
    means: str
    remedy: str


def offline(ready: Ready) -> list[EscapeSeen]:
    """What a harness found, with those toolsets alone that could list nothing behind the walls."""
    looked_at = {seen.agent for seen in ready.toolsets}
    return [
        *(one for one in ready.escapes if one.kind != Way.TOOLSET or one.where not in looked_at),
        *(
            EscapeSeen(kind=Way.TOOLSET, where=seen.agent, detail=seen.kind)
            for seen in ready.toolsets
            if not seen.alone
        ),
    ]


def findings(escapes: Iterable[EscapeSeen]) -> list[Finding]:
    """What is to be said of what a harness found; what counts comes first, else by way."""
    found = [_finding(escape) for escape in escapes]
    order = {way.value: number for number, way in enumerate(Way)}
    return sorted(found, key=lambda one: (not one.counts, order.get(one.way, len(order))))


def rule_of(kind: str) -> Rule:
    """What is ruled of a kind of escape; one that nobody knows is never covered."""
    try:
        return RULES[Way(kind)]
    except ValueError:
        return _UNKNOWN


def _finding(escape: EscapeSeen) -> Finding:
    rule = rule_of(escape.kind)
    return Finding(
        way=escape.kind,
        where=escape.where,
        detail=escape.detail,
        at=escape.at,
        counts=rule.ruling is not Ruling.NOTED and not escape.quiet,
        quiet=escape.quiet,
        means=rule.means,
        remedy=rule.remedy,
    )


def escaped(candidate: Ready, *, base: Ready | None, exercised: Exercised) -> tuple[Escaped, ...]:
    """What a verdict says of the candidate's ways past interception, and which of them count.

    Code behind walls counts where no run reached it and the base does not have the same: what
    recorded work does not reach it cannot do, but nobody knows what a change means it for.
    """
    before = {_same(escape) for escape in base.escapes} if base is not None else set()
    told = [
        Escaped(
            way=escape.kind,
            told=_told(escape, unreached=_is_unreached(escape, exercised)),
            counts=_counts(escape, before, exercised),
        )
        for escape in candidate.escapes
        if not escape.quiet
    ]
    return tuple(_at_most(told))


def attempted(attempts: Iterable[str], *, before: Collection[str]) -> list[Escaped]:
    """What a candidate tried on import and was barred from; what the base tried too is old."""
    return [
        Escaped(way=Way.IMPORT_TIME, told=f"on import: {what}", counts=what not in before)
        for what in attempts
    ]


def _counts(
    escape: EscapeSeen, before: Collection[tuple[str, str, str]], exercised: Exercised
) -> bool:
    match rule_of(escape.kind).ruling:
        case Ruling.NOTED:
            return False
        case Ruling.UNSEEN:
            return True
        case Ruling.WALLED:
            return _is_unreached(escape, exercised) and _same(escape) not in before


def _is_unreached(escape: EscapeSeen, exercised: Exercised) -> bool:
    file = escape.at.rpartition(":")[0]
    return escape.body or escape.block < 0 or not exercised.has_reached(file, escape.block)


def _same(escape: EscapeSeen) -> tuple[str, str, str]:
    """What makes an escape of two versions one: a line moves whenever one above it is added."""
    return (escape.kind, escape.where, escape.detail)


def _told(escape: EscapeSeen, *, unreached: bool) -> str:
    rule = rule_of(escape.kind)
    detail, where = escape.detail[:_SHOWN], escape.where[:_SHOWN]
    at = ", ".join(filter(None, (detail, escape.at[:_SHOWN])))
    behind = ", and no run reached it" if escape.at and unreached else ""
    missed = behind if rule.ruling is Ruling.WALLED else ""
    return f"{where} {rule.means}" + (f" ({at})" if at else "") + missed


def _at_most(told: list[Escaped]) -> Iterator[Escaped]:
    """The first of them, what counts before the rest, with a count of the others."""
    told = sorted(told, key=lambda one: not one.counts)
    yield from told[:_TOLD_AT_MOST]
    if left := told[_TOLD_AT_MOST:]:
        more = f"{len(left)} more ways past interception; `backstop doctor` lists them"
        # Under no way's name: who accepts one does not accept what is not listed.
        yield Escaped(way="", told=more, counts=any(one.counts for one in left))
