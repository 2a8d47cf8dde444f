"""`@effect`: puts a plain function under the guard, and in replay under the harness.

Whoever watches effects installs itself as the sink of the process, or of a context; until then
a decorated function is the function that it was. Standard library only: an agent's own code
imports it.

    @effect(identity=("to",), no_effect_on=(ConnectionRefusedError,))
    def mail(to: str, text: str) -> dict: ...

Works on functions and coroutine functions, by themselves, as tools and as nodes of a workflow.
What cannot be guarded is refused where it is decorated.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

P = ParamSpec("P")
R = TypeVar("R")

MADE_KEY: Final = "$key"
"""The argument under which a key is kept that the caller's own function made."""

KeyOf: TypeAlias = Callable[[Mapping[str, Any]], str]
"""The caller's own idempotency key, made of the arguments by name."""

_SCOPES: Final = ("run", "step", "agent")
_PLAIN: Final = frozenset({str, int, float, bool, type(None), dict, list})
"""What arguments mostly are: nothing of the framework's among them."""
_CONTEXT: Final = re.compile(r"\b(Tool|Callback|Readonly)?Context\b")


class Sink(Protocol):
    """Takes the calls of decorated functions; `run` calls the function itself.

    `run` is a `Body`, which knows what the function's decoration says.
    """

    def call(self, tool: str, arguments: dict[str, Any], run: Callable[[], Any]) -> Any:  # noqa: ANN401 - a user's result
        """Answer the call of a plain function."""
        ...

    async def acall(
        self, tool: str, arguments: dict[str, Any], run: Callable[[], Awaitable[Any]]
    ) -> Any:  # noqa: ANN401 - a user's result
        """Answer the call of a coroutine function."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Declared:
    """What the decoration of a function says of it; what it leaves open is None or empty.

    `key` are the arguments that hold the caller's own idempotency key, `MADE_KEY` for the one
    that `make_key` makes. `undo` is the function that takes the effect back, for a recovery.
    `capability` and `lease` are kept as they were given: only the guard reads them.
    """

    tool: str
    function: Callable[..., Any]
    identity: tuple[str, ...] | None = None
    scope: str | None = None
    key: tuple[str, ...] = ()
    make_key: KeyOf | None = None
    undo: Callable[..., Any] | None = None
    capability: object | None = None
    no_effect_on: tuple[type[Exception], ...] = ()
    lease: str | timedelta | None = None

    @property
    def home(self) -> str:
        """Where the function is at home: module and qualified name."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @property
    def undo_name(self) -> str:
        """Module and qualified name of `undo`; empty if there is none."""
        return "" if self.undo is None else f"{self.undo.__module__}.{self.undo.__qualname__}"

    def keyed(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of the arguments, with the key that the caller's function makes of them."""
        if self.make_key is None:
            return dict(arguments)
        return {**arguments, MADE_KEY: self.make_key(arguments)}


class Body:
    """One call of a decorated function, made when called; `declared` is its decoration."""

    __slots__ = ("_arguments", "_named", "declared")

    def __init__(self, declared: Declared, arguments: Sequence[Any], named: dict[str, Any]) -> None:
        self.declared = declared
        self._arguments = arguments
        self._named = named

    def __call__(self) -> Any:  # noqa: ANN401 - a user's result
        """What the function gives: for a coroutine function, what has to be awaited."""
        return self.declared.function(*self._arguments, **self._named)

    def handed(self, name: str, value: object) -> Body:
        """The same call, in which the parameter `name` has this value."""
        bound = inspect.signature(self.declared.function).bind(*self._arguments, **self._named)
        bound.arguments[name] = value
        return Body(self.declared, bound.args, bound.kwargs)


_installed: list[Sink] = []
_SERVING: Final[ContextVar[Sink | None]] = ContextVar("backstop_sink", default=None)
_PASSING: Final[ContextVar[Declared | None]] = ContextVar("backstop_passing", default=None)
_known: dict[str, Declared] = {}


def install(sink: Sink | None) -> Sink | None:
    """Make `sink` the one that answers from now on, None for nobody; returns the former one."""
    former = _installed[0] if _installed else None
    _installed[:] = [] if sink is None else [sink]
    return former


@contextmanager
def serving(sink: Sink) -> Iterator[None]:
    """In this context, and in tasks that it starts, `sink` answers, whichever is installed."""
    token = _SERVING.set(sink)
    try:
        yield
    finally:
        _SERVING.reset(token)


class passing:  # noqa: N801 - reads as the `with` block that it makes; a class, as it is on the path of every call
    """The next call of `function` in this context is guarded already: it goes straight through.

    For a tool whose function is decorated: the guard that sits on the tool has asked.
    """

    __slots__ = ("_declared", "_token")

    def __init__(self, function: object) -> None:
        self._declared = declared_by(function)

    def __enter__(self) -> None:
        self._token = _PASSING.set(self._declared)

    def __exit__(self, *_: object) -> None:
        _PASSING.reset(self._token)


def declared_by(function: object) -> Declared | None:
    """What the decoration of `function` says; None if it has none."""
    found = getattr(function, "__backstop_declared__", None)
    return found if isinstance(found, Declared) else None


def declarations() -> Iterator[Declared]:
    """What all decorated functions say that this process has defined so far, by home."""
    yield from tuple(_known.values())


@overload
def effect(function: Callable[P, R]) -> Callable[P, R]: ...


@overload
def effect(
    *,
    name: str | None = None,
    identity: Sequence[str] | None = None,
    scope: str | None = None,
    key: str | KeyOf | Sequence[str | KeyOf] | None = None,
    undo: Callable[..., Any] | None = None,
    capability: object | None = None,
    no_effect_on: Sequence[type[Exception]] = (),
    lease: str | timedelta | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def effect(  # noqa: PLR0913 - each names itself, and all but the function may be left out
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    identity: Sequence[str] | None = None,
    scope: str | None = None,
    key: str | KeyOf | Sequence[str | KeyOf] | None = None,
    undo: Callable[..., Any] | None = None,
    capability: object | None = None,
    no_effect_on: Sequence[type[Exception]] = (),
    lease: str | timedelta | None = None,
) -> Any:  # the overloads say what
    """Declare that a function changes the world outside; its name is the tool's name.

    The arguments are bound to parameter names, defaults filled in, before anybody sees them.
    `identity` and `scope` are as in ``backstop.yaml``, which wins. `key` is the caller's own
    idempotency key: a parameter, or a function of the arguments by name; of several, those that
    are there must agree (K18). `capability` is `keyed(...)` or `probe(...)`, `no_effect_on` are
    exceptions after which nothing has happened, `lease` is a span like ``5m``. `undo` is the
    function that takes the effect back.

    Raises `TypeError` for what cannot be guarded, `ValueError` for a declaration that means
    nothing.
    """

    def decorate(decorated: Callable[..., Any]) -> Callable[..., Any]:
        parameters = _parameters(decorated)
        names, make_key = _keys(decorated, key)
        declared = Declared(
            tool=name or decorated.__name__,
            function=decorated,
            identity=None if identity is None else tuple(identity),
            scope=scope,
            key=names,
            make_key=make_key,
            undo=undo,
            capability=capability,
            no_effect_on=tuple(no_effect_on),
            lease=lease,
        )
        _check(declared, parameters)
        # By home: a module that is loaded anew says it anew.
        _known[declared.home] = declared
        return _wrapped(declared, parameters)

    return decorate if function is None else decorate(function)


def _parameters(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function that can be guarded; raises `TypeError` for any other."""
    kind = type(function).__name__
    if not inspect.isfunction(function):
        raise TypeError(f"@effect guards functions, not a {kind}: decorate the function inside it")
    name = function.__qualname__
    if function.__name__ == "<lambda>":
        raise TypeError("@effect on a lambda: it has no name that could name its effect")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"@effect on {name}: a generator has no one result; return it instead")
    signature = inspect.signature(function)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        raise TypeError(f"@effect on {name}: *args and **kwargs name no target; name them all")
    if next(iter(signature.parameters), "") in {"self", "cls"}:
        raise TypeError(
            f"@effect on {name}: what a method's object holds cannot be part of a key; decorate "
            "a function that takes it as an argument"
        )
    return signature


def _keys(
    function: Callable[..., Any], key: str | KeyOf | Sequence[str | KeyOf] | None
) -> tuple[tuple[str, ...], KeyOf | None]:
    if key is None:
        return (), None
    given = [key] if isinstance(key, str) or callable(key) else list(key)
    makers = [one for one in given if not isinstance(one, str)]
    if len(makers) > 1:
        raise ValueError(f"@effect on {function.__qualname__}: give one function as `key`")
    names = tuple(one if isinstance(one, str) else MADE_KEY for one in given)
    return names, makers[0] if makers else None


def _check(declared: Declared, signature: inspect.Signature) -> None:
    name = declared.function.__qualname__
    for said, names in (("identity", declared.identity or ()), ("key", declared.key)):
        unknown = [one for one in names if one not in signature.parameters and one != MADE_KEY]
        if unknown:
            raise ValueError(f"@effect on {name}: {said} names {unknown[0]!r}, no parameter of it")
    if declared.scope is not None and declared.scope not in _SCOPES:
        raise ValueError(f"@effect on {name}: scope is one of {', '.join(_SCOPES)}")
    kinds: tuple[object, ...] = declared.no_effect_on
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise TypeError(f"@effect on {name}: no_effect_on takes exception classes")


def _wrapped(declared: Declared, signature: inspect.Signature) -> Callable[..., Any]:
    function = declared.function
    left_out = {
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.name == "tool_context" or _is_context(parameter.annotation)
    }

    named = _all_named(signature)

    def bound(*args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401 - a user's arguments
        if not args and kwargs.keys() == named.keys():
            given = {name: kwargs[name] for name in named}  # each by its name: nothing to bind
        else:
            arguments = signature.bind(*args, **kwargs)
            arguments.apply_defaults()
            given = arguments.arguments
        if left_out or not _PLAIN.issuperset(map(type, given.values())):
            given = {
                name: value
                for name, value in given.items()
                if name not in left_out and not _is_framework(type(value))  # type: ignore[arg-type]  # classes hash
            }
        return declared.keyed(given)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - a user's result
            sink = _sink_of(declared)
            if sink is None:
                return await function(*args, **kwargs)
            body = Body(declared, args, kwargs)
            return await sink.acall(declared.tool, bound(*args, **kwargs), body)

        wrapper = cast("Callable[..., Any]", awaited)
    else:

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - a user's result
            sink = _sink_of(declared)
            if sink is None:
                return function(*args, **kwargs)
            body = Body(declared, args, kwargs)
            return sink.call(declared.tool, bound(*args, **kwargs), body)

        wrapper = called
    # The framework calls a tool by its function's name, and it must be the one in the keys.
    wrapper.__name__ = declared.tool
    # The mark that doctor and harness look for, and what stands behind it.
    vars(wrapper).update(__backstop_effect__=True, __backstop_declared__=declared)
    return wrapper


def _sink_of(declared: Declared) -> Sink | None:
    """Who answers this call; nobody where the guard of the tool it is in has answered already."""
    if _PASSING.get() is declared:
        # Once: what the function calls in turn is guarded by itself.
        _PASSING.set(None)
        return None
    serving = _SERVING.get()
    if serving is not None:
        return serving
    return _installed[0] if _installed else None


def _all_named(signature: inspect.Signature) -> Mapping[str, inspect.Parameter]:
    """The parameters, where each of them can be given by name; none where one cannot."""
    by_name = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    parameters = signature.parameters
    return parameters if all(one.kind in by_name for one in parameters.values()) else {}


def _is_context(annotation: object) -> bool:
    """Whether a parameter is filled by the framework, which puts its own objects there."""
    if isinstance(annotation, str):
        return _CONTEXT.search(annotation) is not None
    return "google.adk." in str(annotation) and _CONTEXT.search(str(annotation)) is not None


@functools.cache  # of types there are few, and calls are many
def _is_framework(kind: type) -> bool:
    return kind.__module__.startswith("google.adk.")
