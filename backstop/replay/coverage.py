"""What a replay cannot exercise, by comparing what two versions are made of (D7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from backstop.replay.wire import EscapeSeen, Ready

UNOBSERVABLE: Final[Mapping[str, str]] = {
    "own-loop": "runs its own loop, out of sight",
    "code-executor": "executes code that a model wrote",
    "toolset": "lists its tools only when it is online",
    "include-plugins": "runs without plugins",
}
"""Kinds of escape whose effects no replay sees; the others run behind the sandbox's walls."""


def uncovered(
    candidate: Ready, *, base: Ready | None, recorded: Mapping[str, str]
) -> tuple[str, ...]:
    """What the verdict on a candidate does not cover.

    Without a `base`, `recorded` says which code the tools had when the ledger was written.
    """
    before = recorded if base is None else code_of(base)
    return (*_changed(before, code_of(candidate)), *_unobservable(candidate.escapes))


def code_of(ready: Ready) -> dict[str, str]:
    """Digests of the tools' own code, by tool."""
    return {tool.tool: tool.code for tool in ready.tools if tool.code}


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return [
        f"what {tool} does inside changed; no replay runs it"
        for tool in sorted(before.keys() & after.keys())
        if before[tool] != after[tool]
    ]


def _unobservable(escapes: Iterable[EscapeSeen]) -> list[str]:
    return [
        f"{escape.where} {UNOBSERVABLE[escape.kind]}"
        + (f" ({escape.detail})" if escape.detail else "")
        for escape in escapes
        if escape.kind in UNOBSERVABLE
    ]
