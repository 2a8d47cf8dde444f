"""How much of a session's history a replay shows the runner, and when less than all is sound.

The framework walks the whole history at every turn, so a long session costs the square of
its length. Where the model was shown no more than the recent part of it, as with
``include_contents='none'``, a replay may show the runner no more either. That is tried, and
holds only if every model request is then the one that is known to have been asked; if one
is not, the pass is thrown away and played again with the whole history.
"""

from __future__ import annotations

from typing import Final

from backstop.core.history import RecordedRun
from backstop.replay.wire import Ready

RECENT: Final = 64
"""Session events that a bounded view shows at least."""

_LONG: Final = 4 * RECENT
"""Session events of a run from which a bounded view is worth a try that may fail."""


def window_for(run: RecordedRun, ready: Ready) -> int | None:
    """The window to try for `run`; None to show all of its history from the start.

    A candidate whose own code may look at the history is shown all of it, always: what such
    code sees stands in no request.
    """
    events = sum(1 + len(step.models) + len(step.calls) for step in run.steps)
    return None if ready.history or events < _LONG else RECENT
