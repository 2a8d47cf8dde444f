"""Which code stands behind a tool: a digest that knows when it was changed.

Made of source text, not of bytecode: a ledger is written on one Python and gated on others.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import textwrap
import tokenize
from typing import Any


def tool_code(tool: Any) -> str:
    """Digest of the code that a tool runs: its function's, or its class's own `run_async`.

    Empty where there is no source to read, and for tools that the framework brings along.
    """
    body = body_of(tool)
    return "" if body is None else code_digest(body)


def body_of(tool: Any) -> Any:
    """The function that a tool runs; None for tools that the framework brings along."""
    function = getattr(tool, "func", None)
    if function is not None:
        return _function_of(function)
    if type(tool).__module__.startswith("google.adk."):
        return None
    return _function_of(type(tool).run_async)


def code_digest(thing: Any) -> str:
    """Digest of a callable's source, comments and blank lines apart; empty if there is none."""
    try:
        source = textwrap.dedent(inspect.getsource(_function_of(thing)))
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(_bare(source).encode()).hexdigest()[:32]


def _function_of(thing: Any) -> Any:
    """What stands behind wrappers, partials and objects that are called through their class."""
    function = inspect.unwrap(thing) if callable(thing) else thing
    function = getattr(function, "func", function)
    if not hasattr(function, "__code__") and callable(function):
        return type(function).__call__
    return function


def _bare(source: str) -> str:
    """Source text without comments, blank lines and trailing blanks."""
    lines = source.splitlines()
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column]
    except (tokenize.TokenError, SyntaxError):
        # A lambda in the middle of a call is no source of its own: taken as it stands.
        pass
    return "\n".join(line.rstrip() for line in lines if line.strip())
