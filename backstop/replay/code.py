"""What a version is made of, and which of it a replay reached."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from backstop.adk.blocks import Block, blocks
from backstop.replay.wire import Ready, RunDone

_BESIDE: Final = re.compile(
    r"(?:.*/)?(?:tests?/.*|conftest\.py|test_[^/]*|(?:README|CHANGELOG|LICENSE)[^/]*"
    r"|[^/]*_test\.py|[^/]*\.(?:evalset|test)\.json)"
)
"""Files that stand in agent folders and are no part of the agent: its tests, its read-me."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """An agent folder's files, by relative path, without its tests and its read-me.

    `modules` are Python files cut into blocks, `data` the digests of all other files, among them
    those that the agent names elsewhere in its project (``../prompts/a.md``), `unread` those of
    Python files that this interpreter cannot parse.
    """

    modules: Mapping[str, list[Block]] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, files: Iterable[tuple[str, bytes]], *, around: Mapping[str, str] | None = None
    ) -> Self:
        """The code that these files, by relative path, hold; `around` are digests of more data."""
        modules: dict[str, list[Block]] = {}
        data = dict(around or {})
        unread: dict[str, str] = {}
        for name, content in files:
            if _BESIDE.fullmatch(name):
                continue
            digest = hashlib.sha256(content).hexdigest()
            if not name.endswith(".py"):
                data[name] = digest
                continue
            try:
                modules[name] = blocks(content)
            except (SyntaxError, ValueError, RecursionError):
                unread[name] = digest
        return cls(modules=modules, data=data, unread=unread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What a replay reached: blocks by file and number, files that were opened, agents asked."""

    blocks: frozenset[tuple[str, int]] = frozenset()
    files: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()

    @classmethod
    def by(cls, told: Ready | RunDone, *, agents: Iterable[str] = ()) -> Self:
        """What the harness says was reached; `agents` were asked in the run."""
        return cls(
            blocks=frozenset((name, n) for name, found in told.reached.items() for n in found),
            files=frozenset(told.opened),
            agents=frozenset(agents),
        )

    def __or__(self, other: Reached) -> Reached:
        """What either reached."""
        return Reached(
            blocks=self.blocks | other.blocks,
            files=self.files | other.files,
            agents=self.agents | other.agents,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercised:
    """A version's code, what a replay of it reached, and where its tools' bodies stand.

    `bodies` are ``file:qualified name``; no replay runs them, and they are compared apart.
    `setups` are digests of what agents with a model are made with, by name.
    """

    code: Code = field(default_factory=Code)
    reached: Reached = field(default_factory=Reached)
    bodies: frozenset[str] = frozenset()
    setups: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, ready: Ready, code: Code, reached: Reached) -> Self:
        """A version as it says it is, with its files and what was reached."""
        return cls(
            code=code,
            reached=reached,
            bodies=frozenset(tool.body for tool in ready.tools if tool.body),
            setups={agent.name: agent.setup for agent in ready.agents if agent.setup},
        )

    def has_reached(self, file: str, number: int) -> bool:
        """Did any run reach the block?"""
        return (file, number) in self.reached.blocks

    def is_body(self, file: str, name: str) -> bool:
        """Is this function a tool's body, or within one?"""
        place = f"{file}:{name}"
        return any(place == body or place.startswith(f"{body}.<locals>.") for body in self.bodies)
