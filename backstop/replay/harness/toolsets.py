"""The toolsets of the candidate: which list their tools by themselves, and which cannot here."""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop as Loop
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from ...adk.arming import arm_toolset
from ...adk.toolsets import (
    Listed,
    Toolset,
    is_mcp,
    reads_resources,
    selects,
    setup_of,
    told_again,
)
from .channel import Message
from .lookout import Lookout
from .survey import Survey, describe

_LISTING_S: Final = 10.0


class Toolsets:
    """Finds out which toolsets need nobody to list their tools, and serves the others.

    `loop` gives an event loop on which nobody waits in earnest.
    """

    def __init__(
        self, seen: Survey, *, folder: Path, lookout: Lookout, loop: Callable[[], Loop]
    ) -> None:
        self._seen = seen
        self._folder = folder
        self._lookout = lookout
        self._loop = loop
        self._online: dict[str, Any] = {}

    def look(self) -> list[Message]:
        """What `Ready` says of each toolset; the tools of those that list them are added there."""
        return [self._look_at(found, guarded=guarded) for found, guarded in self._seen.toolsets]

    def serve(self, listings: Mapping[str, list[Listed]]) -> None:
        """From now on toolsets that need somebody list what is in `listings`, by key.

        One of an MCP server lists nothing where nothing is there: no server is started.
        """
        for key, toolset in self._online.items():
            listing = listings.get(key)
            if listing is None and not is_mcp(toolset):
                continue
            arm_toolset(toolset, partial(_again, listing or []))

    def _look_at(self, found: Toolset, *, guarded: bool) -> Message:
        agent = found.key.partition("/")[0]
        tools = None if is_mcp(found.toolset) else self._listed_alone(found.toolset)
        if tools is None:
            self._online[found.key] = found.toolset
        for tool in tools or ():
            self._seen.tools.append({**describe(tool, agent=agent, guarded=guarded), "body": ""})
        return {
            "key": found.key,
            "agent": agent,
            "kind": found.kind,
            "prefix": getattr(found.toolset, "tool_name_prefix", None) or "",
            "alone": tools is not None,
            "guarded": guarded,
            "selects": selects(found.toolset),
            "resources": reads_resources(found.toolset),
            "setup": setup_of(found.toolset, self._folder),
        }

    def _listed_alone(self, toolset: Any) -> list[Any] | None:
        """What it lists behind the walls; None if it cannot. To try is no attempt to get out."""
        asked = asyncio.wait_for(toolset.get_tools_with_prefix(None), _LISTING_S)
        try:
            with self._lookout.unheard():
                return list(self._loop().run_until_complete(asked))
        except Exception:  # noqa: BLE001 - whatever a user's toolset raises
            return None


async def _again(listing: list[Listed], toolset: Any, context: Any, original: Any) -> list[Any]:
    return await told_again(toolset, listing, context, original)
