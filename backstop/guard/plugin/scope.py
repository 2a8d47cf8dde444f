# ruff: noqa: ANN401 - the framework's contexts are of any type
"""Which attempt a call belongs to: it hangs on the framework's own context of the run.

The framework hands copies of that context to whatever it runs, in whatever task or thread. Code
that it hands nothing to (a plain function in a node, a runner within a tool) finds its scope in
a context variable.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from backstop.core.declaration import Declaration
from backstop.guard.effect import Sink
from backstop.guard.journal import Attempt, current, enter
from backstop.guard.plugin.sessions import Begun
from backstop.guard.plugin.station import Station

_MARK: Final = "__backstop_scope__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """No call can be guarded, and why; what is declared still tells which ones only read."""

    why: str
    declarations: Mapping[str, Declaration] = field(default_factory=lambda: MappingProxyType({}))
    observing: bool = False


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class Scope:
    """One run of a runner. `attempt` is None where it is on no record.

    `driven` says that somebody else began the attempt and will end it; else `begun` is how.
    """

    sink: Sink
    station: Station | Closed
    attempt: Attempt | None
    driven: bool
    begun: Begun | None = None
    # Weak: a run that was cancelled says no goodbye, and must not keep itself alive.
    root: Callable[[], Any] = lambda: None
    task: Callable[[], asyncio.Task[Any] | None] = lambda: None
    over: bool = False

    @property
    def encloses(self) -> bool:
        """Whether who asks runs inside of this run, rather than after it in the same context.

        A generator that its consumer left leaves the context variable behind.
        """
        if self.over:
            return False
        return asyncio.current_task() is not self.task() or _on_the_stack(self.root())

    @property
    def is_on(self) -> bool:
        """Whether the run goes on, for all that can be seen."""
        task = self.task()
        return not self.over and task is not None and not task.done()

    def is_of(self, context: Any) -> bool:
        """Whether it began with this very context of the framework's, and no nested one."""
        return self.root() is context


_SCOPE: Final[ContextVar[Scope | None]] = ContextVar("backstop_scope", default=None)


def begin(scope: Scope, context: Any) -> None:
    """From now on what the run of the framework's `context` does belongs to `scope`."""
    scope.root = weakref.ref(context)
    task = asyncio.current_task()
    if task is not None:
        scope.task = weakref.ref(task)
    hang(scope, context)
    _SCOPE.set(scope)
    if not scope.driven:
        enter(scope.attempt)


def hang(scope: Scope, context: Any) -> None:
    """Let a context, and every copy of it, know its scope."""
    # Into the instance's dictionary: the framework's contexts are pydantic, and copies keep it.
    vars(context)[_MARK] = scope


def leave(scope: Scope) -> None:
    """In this context nothing belongs to `scope` any more; what it started goes on."""
    if _SCOPE.get() is scope:
        _SCOPE.set(None)
        if not scope.driven and current() is scope.attempt:
            enter(None)


def scope_of(context: Any) -> Scope | None:
    """The scope of what the framework runs with `context`."""
    found = vars(context).get(_MARK)
    return found if isinstance(found, Scope) else None


def around() -> Scope | None:
    """The scope of the run within which the caller's code runs; None outside of any."""
    scope = _SCOPE.get()
    if scope is None or scope.encloses:
        return scope
    leave(scope)
    return None


def serving() -> Scope | None:
    """The scope whose sink answers a plain function that is called in this context."""
    scope = _SCOPE.get()
    return None if scope is None or scope.over else scope


def outlived() -> bool:
    """Whether a run started what runs in this context, and is over: nothing belongs to it.

    Its consumer is started by nobody, though a run that it left early leaves its mark there.
    """
    scope = _SCOPE.get()
    if scope is None or not scope.over:
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a thread without a loop
        return True
    return task is None or task is not scope.task()


def _on_the_stack(root: Any) -> bool:
    """Whether the run of this context is among the callers of whoever asks."""
    if root is None:
        return False
    frame = sys._getframe().f_back  # noqa: SLF001 - the only way to see one's callers
    while frame is not None:
        if any(value is root for value in frame.f_locals.values()):
            return True
        frame = frame.f_back
    return False
