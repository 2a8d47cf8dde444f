"""An agent's own classes: what they inherit, and what of them runs without being called by name."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from typing import Final

from backstop.adapters.discovery.names import last
from backstop.adapters.discovery.sources import Defined, Function, Sources

_DEEP: Final = 6
_BASES: Final = frozenset(
    {"ABC", "BaseModel", "Enum", "Generic", "IntEnum", "NamedTuple", "Protocol", "StrEnum"}
    | {"TypedDict"}
) | {name for name, kind in vars(builtins).items() if isinstance(kind, type)}
_DECORATORS: Final = frozenset({"dataclass", "final", "total_ordering", "unique"})
"""Decorators of classes that add nothing which acts."""

_DUNDER: Final = re.compile(r"__\w+__")


def above(name: str, sources: Sources, depth: int = 0) -> Iterator[str]:
    """What a class of the agent's own inherits from, all the way up."""
    for _, kind in sources.classes.get(name, ()) if depth < _DEEP else ():
        for base in map(_base, kind.bases):
            yield base
            yield from above(base, sources, depth + 1)


def is_plain(name: str, sources: Sources, depth: int = 0) -> bool:
    """Is all that a class inherits known to do nothing by itself, or the agent's own to read?"""
    if name in _BASES:
        return True
    found = sources.classes.get(name, ())
    return bool(found) and depth < _DEEP and all(_is_plain(one, sources, depth) for _, one in found)


def _is_plain(kind: ast.ClassDef, sources: Sources, depth: int) -> bool:
    return (
        not any(key.arg == "metaclass" for key in kind.keywords)
        and all(_decorator(one) in _DECORATORS for one in kind.decorator_list)
        and all(is_plain(_base(base), sources, depth + 1) for base in kind.bases)
    )


def made_by(name: str, sources: Sources, depth: int = 0) -> Iterator[Defined]:
    """What may run unnamed of an object of a class of the agent's own, inherited or not."""
    for module, kind in sources.classes.get(name, ()):
        for node in kind.body:
            if isinstance(node, Function) and _DUNDER.fullmatch(node.name):
                yield Defined(module=module, qualified=f"{kind.name}.{node.name}", node=node)
        for base in kind.bases if depth < _DEEP else ():
            yield from made_by(_base(base), sources, depth + 1)


def _decorator(node: ast.expr) -> str:
    return last(node.func if isinstance(node, ast.Call) else node)


def _base(node: ast.expr) -> str:
    """The name of a class that another inherits from, whatever that is made for."""
    return last(node.value if isinstance(node, ast.Subscript) else node)
