"""One more waiver in the text of ``backstop-waivers.yaml``: comments and order stay as they are."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Final

from backstop.config.strictyaml import parse
from backstop.config.waivers import loads
from backstop.core.waivers import Waiver
from backstop.errors import ConfigError

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*", re.ASCII)
_WORDS: Final = frozenset({"null", "true", "false"})
_EMPTY: Final = re.compile(r"^waivers:[ ]*\[[ ]*\]([ ]*(#.*)?)$", re.MULTILINE)
_ITEM: Final = re.compile(r"^( *)-(?: |$)", re.MULTILINE)
_KEY: Final = re.compile(r"^waivers:", re.MULTILINE)


def appended(text: str, waiver: Waiver, *, name: str) -> str:
    """`text` with `waiver`, which names a fingerprint, at its end; empty text begins a file.

    Raises `ConfigError`: what `loads` raises for a text that is none of ours already, and
    ``waivers-form`` where an entry at the end would not be one more waiver of the list.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += newline
    if parse(text, name=name).value is None:
        text += f"version: 1{newline}"
    before = loads(text, name=name)
    text = _EMPTY.sub(r"waivers:\1", text)
    if _KEY.search(text) is None:
        text += f"waivers:{newline}"
    lines = _entry(waiver)
    indent = _indent(text)
    longer = text + "".join(f"{indent}{line}{newline}" for line in lines)
    if not _is_one_more(longer, (*before, waiver), name=name):
        raise ConfigError(
            f"{name}: nothing can be put at its end: make `waivers` its last key, a list with a "
            "`-` for each; nothing was changed",
            slug="waivers-form",
        )
    return longer


def _entry(waiver: Waiver) -> list[str]:
    """The lines of an entry; what a person wrote is quoted, so nothing in it means anything."""
    kind = [] if waiver.kind is None else [f"  kind: {waiver.kind.value}"]
    count = [] if waiver.count == 1 else [f"  count: {waiver.count}"]
    return [
        f"- fingerprint: {json.dumps(waiver.about)}",
        *kind,
        f"  agent: {_name(waiver.agent)}",
        f"  reason: {json.dumps(waiver.reason, ensure_ascii=False)}",
        f"  author: {json.dumps(waiver.author, ensure_ascii=False)}",
        f"  expires: {waiver.expires.isoformat()}",
        *count,
    ]


def _name(name: str) -> str:
    is_plain = _PLAIN.fullmatch(name) is not None and name not in _WORDS
    return name if is_plain else json.dumps(name)


def _indent(text: str) -> str:
    """How far the list's items stand in; two blanks where there is none yet."""
    key = _KEY.search(text)
    item = None if key is None else _ITEM.search(text, key.end())
    return "  " if item is None else item[1]


def _is_one_more(text: str, expected: tuple[Waiver, ...], *, name: str) -> bool:
    try:
        found = loads(text, name=name)
    except ConfigError:
        return False
    return [replace(one, place="") for one in found] == [replace(one, place="") for one in expected]
