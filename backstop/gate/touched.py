"""Which agents a change concerns: those whose code, packages, rules or ledger it may alter.

Pure, and cautious: nobody knows what an agent imports before it runs, so a change that lies in
no agent's folder concerns every agent, unless it is documentation. What lies in another's folder,
and documentation, concerns those whose code points to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from backstop.gate.packages import PACKAGES

_LOCKS: Final = re.compile(
    rf"(?:.*/)?(?:{PACKAGES}|(?:[^/]*\.)?Dockerfile[^/]*|\.dockerignore|\.backstopignore)",
    re.IGNORECASE,
)
"""Files that say which packages there are, or what is in an image: they concern everybody."""

_PROSE: Final = re.compile(
    r"docs/(?:.*/)?[^/]+\.md|(?:README|CHANGELOG|CONTRIBUTING|SECURITY|CODE_OF_CONDUCT)(?:\.md)?"
    r"|LICEN[CS]E(?:\.md|\.txt)?"
)
"""Documentation, by where it lies: a Markdown file elsewhere may be somebody's prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Where an agent lies in a checkout: paths from its top, None for what lies outside of it.

    `ledger` is None as well where the ledger is in a store. `stated` is all that the
    configuration says of the agent, and of every gate.
    """

    folder: str | None
    ledger: str | None
    stated: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A commit: digests by path, and the agents in it by name; `config` is the path of its file.

    `reaches` are the files and folders outside of its own that an agent's code points to.
    """

    files: Mapping[str, str]
    agents: Mapping[str, Footprint]
    config: str
    reaches: Mapping[str, Collection[str]] = field(default_factory=dict)

    def concerns(self, path: str, agent: str) -> bool:
        """May a change of the file at `path` make a difference to `agent`?

        The configuration's own file makes none by itself: what it states is compared apart.
        """
        own = self.agents[agent]
        if own.folder is None or _is_in(path, own.folder) or path == own.ledger:
            return True
        if any(_is_in(path, place) for place in self.reaches.get(agent, ())):
            return True
        if path == self.config:
            return False
        if _LOCKS.fullmatch(path):
            return True
        others = [print_ for name, print_ in self.agents.items() if name != agent]
        # What lies around an agent it may import, whoever else's that is.
        apart = [
            other.folder
            for other in others
            if other.folder is not None and not _is_in(own.folder, other.folder)
        ]
        return (
            not _PROSE.fullmatch(path)
            and all(path != other.ledger for other in others)
            and not any(_is_in(path, folder) for folder in apart)
        )


def documentation(files: Iterable[str]) -> frozenset[str]:
    """Those of a checkout's files that no agent reads, as long as none points to them."""
    return frozenset(path for path in files if _PROSE.fullmatch(path))


def within_reach(
    files: Mapping[str, str], *, folder: str, reaches: Collection[str] = ()
) -> dict[str, str]:
    """Of a checkout's files those that code in `folder` may read.

    That is all but documentation, unless it points there: `reaches` says where it does.
    """
    idle = documentation(files) - set(reaches)
    return {path: seen for path, seen in files.items() if _is_in(path, folder) or path not in idle}


def touched(base: Checkout, head: Checkout) -> dict[str, str]:
    """Why each agent of `head` that the change concerns is concerned, by name."""
    changed = sorted(
        path
        for path in base.files.keys() | head.files.keys()
        if base.files.get(path) != head.files.get(path)
    )
    found = {name: _reason(name, base, head, changed) for name in head.agents}
    return {name: why for name, why in found.items() if why is not None}


def _reason(agent: str, base: Checkout, head: Checkout, changed: list[str]) -> str | None:
    if agent not in base.agents:
        return "it is new"
    if base.agents[agent] != head.agents[agent] or base.config != head.config:
        return "what the configuration says of it changed"
    if head.agents[agent].folder is None:
        return "it lies outside of the checkout"
    for path in changed:
        if base.concerns(path, agent) or head.concerns(path, agent):
            return f"{path} changed"
    return None


def _is_in(path: str, folder: str) -> bool:
    return folder in {"", "."} or path == folder or path.startswith(f"{folder}/")
