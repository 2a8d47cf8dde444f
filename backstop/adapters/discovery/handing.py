"""Functions that are handed over, to be called by somebody else."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from backstop.adapters.discovery.names import last

_FIRST: Final = """
    Process Thread accumulate add_done_callback apply apply_async async_to_sync call_soon
    call_soon_threadsafe dropwhile filter filterfalse imap imap_unordered map map_async partial
    partialmethod reduce run_in_threadpool run_sync starmap starmap_async submit sync_to_async
    takewhile to_thread
    """
_SECOND: Final = "Timer call_at call_later groupby run_in_executor"
_CALLING: Final[Mapping[str, int]] = {
    **dict.fromkeys(_FIRST.split(), 0),
    **dict.fromkeys(_SECOND.split(), 1),
}
"""What calls a function that it is handed, and at which place it takes it."""

_WAITING: Final = frozenset(
    {"map_async", "run_in_executor", "run_in_threadpool", "run_sync", "submit", "to_thread"}
)
"""What does nothing but call it, and gives its answer."""

_NAMED: Final = frozenset(
    {"callback", "default_factory", "fn", "func", "function", "initializer", "key", "target"}
)
_HARMLESS: Final = frozenset({"itemgetter", "attrgetter"})
_DATA: Final = frozenset({"codes", "environ", "exceptions", "linesep", "name", "path", "sep"})
"""What is no function, though it lies in a module that acts."""


def calls_in(call: ast.Call) -> Iterator[ast.Call]:
    """The calls that a call makes of functions that it is handed, with what they are given."""
    yield from _called(call)
    for key in call.keywords:
        if key.arg in _NAMED:
            yield from _as_call(key.value, [], [])


def passed_on(call: ast.Call) -> ast.expr | None:
    """The function that a call does nothing but call; None for a call that may do more."""
    inner = next(_called(call), None) if last(call.func) in _WAITING else None
    return None if inner is None else inner.func


def handed(call: ast.Call) -> Iterator[ast.expr]:
    """Names that a call is handed, within lists and the like too."""
    left = [*call.args, *(key.value for key in call.keywords)]
    while left:
        node = left.pop()
        match node:
            case ast.Name() | ast.Attribute():
                if last(node) not in _DATA and last(node)[:1].islower():
                    yield node
            case ast.Starred(value=inner):
                left.append(inner)
            case ast.List(elts=inside) | ast.Tuple(elts=inside) | ast.Set(elts=inside):
                left += inside
            case ast.Dict(values=inside):
                left += inside
            case ast.IfExp(body=first, orelse=second):
                left += [first, second]
            case _:
                pass


def _called(call: ast.Call) -> Iterator[ast.Call]:
    at = _CALLING.get(last(call.func))
    # A query has a method of that name, which is handed what to look for.
    is_query = isinstance(call.func, ast.Attribute) and last(call.func) == "filter"
    if at is not None and len(call.args) > at and not is_query:
        yield from _as_call(call.args[at], call.args[at + 1 :], call.keywords)


def _as_call(
    given: ast.expr, args: list[ast.expr], keywords: list[ast.keyword]
) -> Iterator[ast.Call]:
    if isinstance(given, ast.Constant):
        return  # no function at all
    if isinstance(given, ast.Call) and last(given.func) in _HARMLESS:
        return  # takes members out; one that is code is read where it is
    made = ast.Call(func=given, args=args, keywords=keywords)
    yield ast.copy_location(made, given)
