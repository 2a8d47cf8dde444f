"""How much of a session's history a replay shows the runner, and when less than all is sound.

The framework walks the whole history at every turn, so a long session costs the square of
its length. Where the model was shown no more than the recent part of it, as with
``include_contents='none'``, a replay may show the runner no more either. That is tried, and
holds only if every model request is then the one that is known to have been asked; if one
is not, the pass is thrown away and played again with the whole history.
"""

from __future__ import annotations

from typing import Final

from backstop.core.runs import RecordedRun
from backstop.replay.wire import Ready

RECENT: Final = 64
"""Session events that a bounded view shows at least."""

_WORTH_A_TRY: Final = 4
"""A try fails within a window's length: it is made where a run is so many times longer."""


def window_for(run: RecordedRun, ready: Ready, *, recent: int) -> int | None:
    """The window to try for `run`, `recent` events; None to show all from the start, as 0 does.

    A candidate whose own code may look at the history is shown all of it, always: what such
    code sees stands in no request.
    """
    events = sum(1 + len(step.models) + len(step.calls) for step in run.steps)
    is_long = events >= _WORTH_A_TRY * recent
    return recent if recent and is_long and not ready.history else None
