"""What stands behind a tool and an agent: digests that know when it was changed.

Code's are made of source text, not of bytecode: a ledger is written on one Python and gated
on others.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import textwrap
import tokenize
from collections.abc import Mapping
from typing import Any, Final

_NO_SETUP: Final = frozenset({"name", "parent_agent", "sub_agents"})


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


def setup_digest(agent: Any) -> str:
    """Digest of what an agent is made with: instruction, model, tools by name, callbacks, ...

    Empty for an agent without a model. Its code and its sub-agents are compared by themselves.
    """
    if not hasattr(agent, "canonical_model"):
        return ""
    fields = sorted(set(type(agent).model_fields) - _NO_SETUP)
    members = [f"{name}={spelled(getattr(agent, name, None))}" for name in fields]
    return hashlib.sha256("\n".join(members).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def spelled(value: Any) -> str:
    """A value that an agent or toolset is made with, the same in every process.

    It holds no address, and no order of hashes.
    """
    if value is None or isinstance(value, str | int | float | bytes):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(spelled, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{key}: {spelled(item)}' for key, item in value.items()))}}}"
    for spell in ("model_json_schema", "model_dump_json"):
        if isinstance(value, type) == (spell == "model_json_schema") and hasattr(value, spell):
            try:
                return str(getattr(value, spell)())
            except Exception:  # noqa: BLE001 - a user's class may have no such form
                break
    name = getattr(value, "__qualname__", None) or getattr(value, "name", None)
    return f"{type(value).__qualname__} {name if isinstance(name, str) else ''}"


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
