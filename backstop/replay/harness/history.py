"""Whether the candidate's own code looks at the session's events, and not only at its state.

The framework shows a model a part of the session; what the model was shown is in its request.
Code that reads the session by itself leaves no such trace, so where any might, a replay shows
it all of the session. Read from the source, and cautious: a session that is handed to anybody
counts as read.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_READING: Final = frozenset(
    {
        "_get_events",
        "_session_service",
        "add_session_to_memory",
        "events",
        "get_session",
        "list_sessions",
        "session_service",
    }
)
_HARMLESS: Final = frozenset({"app_name", "id", "last_update_time", "state", "user_id"})
"""Members of a session that say nothing of its events."""


def readers(folder: Path, app: Any, *, before: Collection[str]) -> list[str]:
    """Places, `file:line`, that may look at the session's events: the first of each file.

    Searched are the candidate's folder, and the modules that it loaded from elsewhere: those
    that are not in `before`, the names of what was loaded without it.
    """
    found = [
        f"{file.relative_to(folder) if file.is_relative_to(folder) else file}:{line}"
        for file in sorted({*_of_folder(folder), *_loaded(before)})
        if (line := _first_reader(file))
    ]
    if getattr(app, "events_compaction_config", None) is not None:
        found.append("the app's events_compaction_config")
    return found


def _of_folder(folder: Path) -> Iterator[Path]:
    return (file.resolve() for file in folder.rglob("*.py"))


def _loaded(before: Collection[str]) -> Iterator[Path]:
    """Sources of modules that came with the candidate and know the framework."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        ours = name in before or name.startswith(("google.adk.", f"{__package__}."))
        if file and not ours and any(map(_of_framework, list(vars(module).values()))):
            yield Path(file).resolve()


def _of_framework(value: Any) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    return isinstance(name, str) and name.startswith("google.adk")


def _first_reader(file: Path) -> int:
    """The line of the first place that may look at events; 0 if there is none."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return 1
    followed = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in _HARMLESS
    }
    lines = [getattr(n, "lineno", 1) for n in ast.walk(tree) if _may_read(n, followed)]
    return min(lines, default=0)


def _may_read(node: ast.AST, followed: set[int]) -> bool:
    match node:
        case ast.Attribute(attr="session") if id(node) not in followed:
            return True
        case ast.Attribute(attr=name) if name in _READING:
            return True
        case ast.Constant(value=str(text)):
            # For `getattr`: a name in a text of its own, or at the end of a dotted path.
            return text.rsplit(".", 1)[-1] in _READING | {"session"}
        case _:
            return False
