"""What the base version's own replay says: what it does already, and where it says nothing (D3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from backstop.core.divergence import Divergence
from backstop.core.history import History
from backstop.core.keying import Rules
from backstop.core.verdict import identity_of
from backstop.gate.comparing import Asked, comparing


def weighed(
    history: History, control: Asked, rules: Rules, *, is_chance: Callable[[Divergence], bool]
) -> tuple[Counter[tuple[str, ...]], list[str]]:
    """What the base does already, counted by `identity_of`, and why its replay is in doubt.

    What `is_chance` says is none of its doing, and could not block, puts nothing in doubt.
    """
    found = comparing(history, control, rules)
    pre_existing, doubts = _parted(found.divergences, control.version, history, is_chance=is_chance)
    return pre_existing, [*doubts, *_gaps(control)]


def _parted(
    divergences: Sequence[Divergence],
    version: str,
    history: History,
    *,
    is_chance: Callable[[Divergence], bool],
) -> tuple[Counter[tuple[str, ...]], list[str]]:
    """Part a control run's findings into those that were there, and those it cannot explain.

    On rows that the control's own version wrote it must find nothing (D3), but for chance.
    """
    versions: dict[str, set[str]] = {}
    for row in history.rows:
        versions.setdefault(row.run, set()).add(row.v)
    pre_existing: Counter[tuple[str, ...]] = Counter()
    unexplained: Counter[str] = Counter()
    for divergence in divergences:
        wrote = {divergence.v} if divergence.recorded else versions.get(divergence.run, {""})
        if version and wrote == {version}:
            unexplained[divergence.run] += not is_chance(divergence)
        else:
            pre_existing[identity_of(divergence)] += 1
    doubts = [
        f"run {run}: the base version does not reproduce its own record "
        f"({count} found), so the replay cannot be trusted there"
        for run, count in sorted(unexplained.items())
        if count
    ]
    return pre_existing, doubts


def _gaps(control: Asked) -> list[str]:
    """Runs of which the base says nothing, since it could not be replayed there."""
    return [
        f"run {name}: the base version could not be replayed: {run.not_replayable}"
        for name, run in sorted((control.replayed or {}).items())
        if run.not_replayable is not None
    ]
