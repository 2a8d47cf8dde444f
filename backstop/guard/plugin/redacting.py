"""What a model was asked, digested as the ledger tells it: calls with tokens for hidden values.

In production the conversation holds the values themselves, in a replay the tokens that were
recorded. Both must have one digest, or every request after a redacted call would have drifted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any, Final

from backstop.adk.requests import Counterparts
from backstop.core.canon import NotCanonical, parse
from backstop.core.redaction import HIDDEN, Redaction

_RETOLD: Final = re.compile(r"called tool `([^`]*)` with parameters:")


class RedactedCalls(Counterparts):
    """Every call of a tool with hidden fields, in the place of itself: redacted."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__()
        self._redaction = redaction

    def __bool__(self) -> bool:
        return self._redaction.hides_anything

    def of(self, name: str, args: str, nth: int) -> tuple[str, Mapping[str, Any]] | None:  # noqa: ARG002 - each is itself
        """The call with its hidden values as tokens."""
        try:
            given = parse(args)
        except NotCanonical:
            given = None  # it has no canonical form, and the guard refuses it
        if not isinstance(given, dict):
            return (name, {"args": HIDDEN}) if name in self._redaction.declarations else None
        return name, self._redaction.told(name, given)

    def in_text(self, text: str) -> str:
        """Text in which the framework retells another agent's call, with tokens."""
        found = _RETOLD.search(text)
        begin, end = text.find("{", found.end() if found else 0), text.rfind("}") + 1
        if found is None or not 0 <= begin < end:
            return text
        try:
            given = ast.literal_eval(text[begin:end])
            told = self._redaction.told(found[1], given)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return text
        if told is given:
            return text
        return f"{text[:begin]}{dict(sorted(told.items()))}{text[end:]}"
