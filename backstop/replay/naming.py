"""Which texts in an agent's modules may name a file that lies outside of the agent's folder."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Final

_PATH: Final = re.compile(r"(?!/)[^\0-\x1f\"'<>|*?{}]{1,200}")


def names_in(files: Iterable[tuple[str, bytes]]) -> frozenset[str]:
    """The texts of Python modules, by relative path and content, that are a path or a part of one.

    Of a text that is put together the fixed beginning counts: ``prompts/`` of
    ``f"prompts/{name}.md"``. What this Python cannot parse has none.
    """
    return frozenset(
        text
        for file, content in files
        if file.endswith(".py")
        for text in _texts(content)
        if _PATH.fullmatch(text)
    )


def _texts(source: bytes) -> Iterator[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
