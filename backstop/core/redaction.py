"""Personal data never reaches a ledger: declared values become keyed tokens before they are stored.

A field of the kind ``redact`` is kept as ``hmac:v1:`` and the HMAC-SHA256 of its canonical
text under a key that the store never sees. Equal values have equal tokens, so keys and
fingerprints, which are made of tokens, still compare. The value is read as the tool's schema
means it and spelled by the field's other kinds first: what is the same without ``redact`` is
the same with it.

A token stays as it is, so rows and recorded answers can be redacted again without the key. So
does null, and what equals the parameter's declared default: both say nothing of anybody. Of a
list each item becomes a token of its own.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from backstop.core.canon import Json, NotCanonical, canonical, parse
from backstop.core.declaration import Declaration
from backstop.core.fields import Fields, coerce, normalise, tokens_of
from backstop.errors import BackstopError

V = TypeVar("V")

REDACT: Final = "redact"
HIDDEN: Final = "hmac:none"
"""Stands where a token should, and there is no key to make one: it equals nothing."""

_TOKEN: Final = re.compile(r"hmac:v1:[0-9a-f]{64}")
_SHORTEST_KEY: Final = 16
_MARK_DIGITS: Final = 16


class NoRedactionKey(BackstopError):
    """A value is to be kept as a token, and there is no key to make one."""

    slug = "redaction-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionKey:
    """The secret that tokens are made with."""

    secret: bytes = field(repr=False)

    @property
    def mark(self) -> str:
        """Tells this key from any other, and does not tell the secret."""
        made = hmac.new(self.secret, b"backstop redaction key", hashlib.sha256)
        return made.hexdigest()[:_MARK_DIGITS]


def key_from(text: str) -> RedactionKey:
    """The key that `text` holds, blanks around it left out.

    Raises `NoRedactionKey` for one that could be guessed.
    """
    secret = text.strip().encode()
    if len(secret) < _SHORTEST_KEY:
        raise NoRedactionKey(
            f"the redaction key has {len(secret)} bytes; use at least {_SHORTEST_KEY}, made by "
            "chance, like those of `openssl rand -hex 32`"
        )
    return RedactionKey(secret=secret)


def is_token(value: object) -> bool:
    """Whether this stands for a value that was redacted."""
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None


def redacted_fields(declaration: Declaration) -> Fields:
    """The fields whose values are kept as tokens, with all their kinds."""
    return {name: kinds for name, kinds in declaration.fields.items() if REDACT in kinds}


def token(value: Json, kinds: Sequence[str], key: RedactionKey) -> str:
    """The token of a value under the kinds of its field."""
    text = canonical(normalise(value, kinds))
    return f"hmac:v1:{hmac.new(key.secret, text.encode(), hashlib.sha256).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """Redacts calls under `declarations`. Without a `key` only what holds no value to hide."""

    declarations: Mapping[str, Declaration] = field(default_factory=dict)
    key: RedactionKey | None = None

    def arguments(
        self, arguments: Mapping[str, V], declaration: Declaration
    ) -> Mapping[str, V | Json]:
        """The arguments as they may be stored. Where nothing is declared, those that came.

        Raises `NoRedactionKey`, and `NotCanonical` for what has no canonical form.
        """
        if not declaration.fields or not (fields := redacted_fields(declaration)):
            return arguments  # on the path of every call
        made = partial(self._token, declaration.tool)
        return self._rewritten(arguments, declaration, fields, made)

    def told(self, tool: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """The arguments as they may be told; without a key, `HIDDEN` in place of each token.

        For calls that are only reported: what a model asked for, what a session holds.
        """
        declaration = self.declarations.get(tool)
        if declaration is None or not (fields := redacted_fields(declaration)):
            return arguments
        try:
            return self._rewritten(arguments, declaration, fields, self._shown)
        except NotCanonical:
            return dict.fromkeys(arguments, HIDDEN)

    def answer(self, value: object) -> object:
        """A model's answer, or events of a session, with every call in it as it may be stored.

        A call is any object with the `name` of a declared tool, and `args`.
        """
        return self._answer(value) if self.hides_anything else value

    def _answer(self, value: object) -> object:
        if isinstance(value, list):
            return [self._answer(item) for item in value]
        if not isinstance(value, dict):
            return value
        name, args = value.get("name"), value.get("args")
        if isinstance(name, str) and isinstance(args, Mapping):
            told = self.told(name, args)
            if told is not args:
                return {**value, "args": told}
        return {member: self._answer(item) for member, item in value.items()}

    @property
    def hides_anything(self) -> bool:
        """Whether any tool has a field that is kept as a token."""
        return any(redacted_fields(one) for one in self.declarations.values())

    def _token(self, tool: str, value: Json, kinds: Sequence[str]) -> Json:
        if self.key is None:
            raise NoRedactionKey(
                f"{tool}: a value is declared `redact`, and there is no key: set "
                "BACKSTOP_REDACTION_KEY, or BACKSTOP_REDACTION_KEY_FILE"
            )
        return token(value, kinds, self.key)

    def _shown(self, value: Json, kinds: Sequence[str]) -> Json:
        return HIDDEN if self.key is None else token(value, kinds, self.key)

    def _rewritten(
        self,
        arguments: Mapping[str, V],
        declaration: Declaration,
        fields: Fields,
        edit: Callable[[Json, Sequence[str]], Json],
    ) -> dict[str, V | Json]:
        given = parse(canonical(dict(arguments)))
        read = coerce(given, declaration.schema) if declaration.schema else given
        assert isinstance(read, dict)  # noqa: S101 - an object stays one, whatever its schema
        edited: dict[str, Json] = {}
        for name, kinds in fields.items():
            first, *way = tokens_of(name)
            value = edited.get(first, read.get(first))
            if value is None or (not way and _is_default(value, kinds, declaration, first)):
                continue
            edited[first] = _Walk(kinds=kinds, edit=edit).along(value, tuple(way))
        # All else stays as it came: it is answered with, and must not change its type.
        return {
            name: _plain(edited[first]) if (first := _spelled(name)) in edited else value
            for name, value in arguments.items()
        }


def _spelled(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _plain(value: Json) -> Json:
    """The same with numbers as JSON readers have them, so that it can be written as it is."""
    found: Json = json.loads(canonical(value))
    return found


NO_KEY: Final = Redaction()
"""Makes no tokens, so it lets no value pass that needs one."""


def _is_default(value: Json, kinds: Sequence[str], declaration: Declaration, name: str) -> bool:
    defaults = declaration.defaults
    if name not in defaults:
        return False
    return canonical(normalise(value, kinds)) == canonical(normalise(defaults[name], kinds))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """The way to the values of one field, and what becomes of them."""

    kinds: Sequence[str]
    edit: Callable[[Json, Sequence[str]], Json]

    def along(self, value: Json, way: tuple[str, ...]) -> Json:
        """`value` with the field's values edited. JSON text on the way stays text."""
        if not way:
            return self._leaf(value)
        if isinstance(value, list):
            return [self.along(item, way) for item in value]
        if isinstance(value, dict):
            name, *below = way
            if name not in value:
                return value
            return {**value, name: self.along(value[name], tuple(below))}
        inner = _inside(value)
        return value if inner is None else canonical(self.along(inner, way))

    def _leaf(self, value: Json) -> Json:
        if value is None or is_token(value) or value == HIDDEN:
            return value
        if isinstance(value, list):
            return [self._leaf(item) for item in value]
        inner = _inside(value) if "json" in self.kinds else None
        if isinstance(inner, list):
            return canonical([self._leaf(item) for item in inner])
        return self.edit(value, self.kinds)


def _inside(value: Json) -> Json:
    """The object or array that JSON text holds; None where there is none."""
    if not isinstance(value, str):
        return None
    try:
        found = parse(value)
    except NotCanonical:
        return None
    return found if isinstance(found, dict | list) else None
