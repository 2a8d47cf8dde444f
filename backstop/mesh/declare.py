# ruff: noqa: ANN401 - a user's values are of any type
"""What an agent's own code declares of its steps, where the recorder cannot see it.

Standard library only: an agent's code imports it. Where nobody records, a decorated function is
the function that it was, and `depends_on` does nothing.

    @evidence(ttl=timedelta(hours=1), source="prices")
    def quote(symbol: str) -> dict: ...

    @step
    def merge(left: dict, right: dict) -> dict: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, ParamSpec, Protocol, TypeVar, cast, overload

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was seen of the world outside: how many seconds it stays fresh, and whence it is.

    `ttl` None is for ever.
    """

    ttl: float | None
    source: str


class Doing(Protocol):
    """A step of its own that is at work."""

    def done(self, result: object) -> None:
        """It gave this; a step that raised says nothing, and leaves no record."""
        ...

    def leave(self) -> None:
        """What is read from here on is read by whoever called it."""
        ...


class Noting(Protocol):
    """Whoever records the step that the caller is in."""

    def depends(self, name: str, value: object, evidence: Evidence | None) -> None:
        """The step read `value`, and calls it `name`."""
        ...

    def enter(
        self, function: Callable[..., Any], arguments: Mapping[str, Any], evidence: Evidence | None
    ) -> Doing:
        """`function` begins, as a step of its own."""
        ...


NOTING: Final[ContextVar[Noting | None]] = ContextVar("backstop_noting", default=None)
"""Who records what happens in this context; None where nobody does."""


def depends_on(name: str, value: object, *, ttl: float | timedelta | None = None) -> None:
    """The step that runs now was made from `value`, which came from where nobody could see.

    `name` says what it is, the same in every run; `ttl` is how many seconds it stays fresh.
    """
    noting = NOTING.get()
    if noting is not None:
        kept = None if ttl is None else Evidence(ttl=_seconds(ttl), source=name)
        noting.depends(name, value, kept)


def evidence(
    *, ttl: float | timedelta | None, source: str | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """What the function gives is evidence: an input that stays fresh for `ttl` seconds.

    `source` is the name by which a trust break may name it, the function's if left out. Each call
    is a step of its own. Raises `TypeError` for a generator, `ValueError` for a negative `ttl`.
    """
    seconds = None if ttl is None else _seconds(ttl)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = source or str(getattr(function, "__name__", type(function).__name__))
        return _recorded(function, Evidence(ttl=seconds, source=name))

    return decorate


@overload
def step(function: Callable[P, R]) -> Callable[P, R]: ...


@overload
def step() -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def step(function: Callable[..., Any] | None = None) -> Any:
    """Each call of the function is a step of its own, made from its arguments and what it reads.

    For nodes of a workflow, which the framework tells nobody of. Raises `TypeError` for a
    generator.
    """
    return step if function is None else _recorded(function, None)


def is_step(function: object) -> bool:
    """Whether each call of `function` is on record as a step of its own."""
    return getattr(function, "__backstop_step__", False) is True


def _seconds(ttl: float | timedelta) -> float:
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else float(ttl)
    if not seconds >= 0:
        raise ValueError(f"a ttl of {ttl} s: give how many seconds it stays fresh, or None")
    return seconds


def _begun(
    function: Callable[..., Any],
    signature: inspect.Signature,
    kept: Evidence | None,
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> Doing | None:
    noting = NOTING.get()
    if noting is None:
        return None
    bound = signature.bind(*args, **named)
    bound.apply_defaults()
    return noting.enter(function, bound.arguments, kept)


def _recorded(function: Callable[P, R], kept: Evidence | None) -> Callable[P, R]:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function.__qualname__}: a generator has no one result; return it")
    begin = functools.partial(_begun, function, inspect.signature(function), kept)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **named: Any) -> Any:
            doing = begin(args, named)
            if doing is None:
                return await function(*args, **named)
            try:
                result = await function(*args, **named)
                doing.done(result)
            finally:
                doing.leave()
            return result

        wrapper = cast("Callable[..., Any]", awaited)
    else:

        @functools.wraps(function)
        def called(*args: Any, **named: Any) -> Any:
            doing = begin(args, named)
            if doing is None:
                return function(*args, **named)
            try:
                result = function(*args, **named)
                doing.done(result)
            finally:
                doing.leave()
            return result

        wrapper = called
    vars(wrapper)["__backstop_step__"] = True
    return wrapper
