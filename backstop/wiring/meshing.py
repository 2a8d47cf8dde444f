# ruff: noqa: ANN401 - the framework's values are of any type
"""The mesh's recorder beside a guard: both tell of the same runs, steps and effects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from backstop.guard.plugin.scope import Closed, scope_of
from backstop.mesh.books import Books
from backstop.mesh.declare import Evidence
from backstop.mesh.recorder import MeshPlugin


def recorder(
    books: Books,
    *,
    evidence: Mapping[str, Evidence] | None = None,
    rules: Callable[[str], Mapping[str, str]] | None = None,
    kept: Collection[str] = (),
) -> MeshPlugin:
    """The recorder of an app whose plugins have a guard before it.

    Runs and their steps bear the names that they have in the guard's ledger, and effects are
    those that it guards. `evidence`, `rules` and `kept` are as `MeshPlugin` takes them.
    """
    return MeshPlugin(
        books, evidence=evidence, rules=rules, where=_where, effects=_is_effect, kept=kept
    )


def _where(context: Any) -> tuple[str, str] | None:
    scope = scope_of(context)
    attempt = None if scope is None else scope.attempt
    return None if attempt is None else (attempt.run, attempt.step)


def _is_effect(tool: Any, context: Any) -> bool:
    """Whether the guard takes the tool's calls for effects; it does so of what it knows nothing."""
    scope = scope_of(context)
    station = None if scope is None else scope.station
    if station is None or isinstance(station, Closed):
        return True
    return station.declaration_of(tool.name).effect
