# ruff: noqa: ANN401 - the framework's values are of any type
"""What toolsets list, on record: a replay can ask no server for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from backstop.adk.arming import arm_toolset
from backstop.adk.toolsets import listing_of, lists_alone, toolsets_of
from backstop.errors import BackstopError
from backstop.guard.claims.offloop import asked
from backstop.guard.plugin.station import Station

_log: Final = logging.getLogger("backstop")


def hear_toolsets(agent: Any, station: Station) -> None:
    """Keep what the agent's toolsets list from now on, as the newest word on each.

    What they list is handed on as it is, and a record that fails never keeps it back: a replay
    then says what it does not know.
    """
    if station.learner is None:
        return
    for key, _, toolset in toolsets_of(agent):
        if not lists_alone(toolset):
            arm_toolset(toolset, partial(_list, key, station))


async def _list(
    key: str,
    station: Station,
    toolset: Any,  # noqa: ARG001 - the shape of a lister
    context: Any,
    original: Callable[..., Any],
) -> list[Any]:
    tools: list[Any] = await original(context)
    learner = station.learner
    assert learner is not None  # noqa: S101 - only then was it armed
    try:
        listing = listing_of(tools)
        if not learner.knows_listing(key, listing):
            await asked(station.journal.store, partial(learner.learn_listing, key, listing))
    except BackstopError as error:
        _log.warning("backstop could not record the tools of %s: %s", key, error)
    except Exception as error:  # noqa: BLE001 - a tool of somebody's may spell itself as it likes
        _log.warning("backstop could not read the tools of %s: %s", key, type(error).__name__)
    return tools
