"""Markdown as GitHub reads it: a page as a tree, and what in it is alive.

The reader is cmark-gfm, GitHub's own, from Debian; it is installed where it is missing. What
GitHub adds to its pages afterwards (mentions, references, emoji) is looked for in the text
that stands outside of code, where GitHub looks for it too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from typing import Final
from xml.etree import ElementTree as ET

import pytest

_PROGRAM: Final = "cmark-gfm"
_EXTENSIONS: Final = ("table", "autolink", "strikethrough", "tagfilter", "tasklist", "footnotes")
_NAMESPACE: Final = "{http://commonmark.org/xml/1.0}"
_INLINE: Final = frozenset(
    {"text", "code", "softbreak", "linebreak", "html_inline", "link", "image", "emph", "strong"}
)
_NODES: Final = _INLINE | {
    "document",
    "paragraph",
    "heading",
    "list",
    "item",
    "block_quote",
    "code_block",
    "html_block",
    "table",
    "table_header",
    "table_row",
    "table_cell",
}
_TAGS: Final = frozenset({"details", "summary", "code", "sub", "br"})
_LIVE: Final = {
    "mention": r"(?<!\w)@\w",
    "issue": r"#\d",
    "other issue": r"\bGH-\d|\b[A-Z]{2,}-\w",
    "commit": r"\b(?=[0-9a-f]*\d|[a-f]{7})[0-9a-f]{7,40}\b",
    "address": r"https?://|www\.|\w@\w|mailto:|xmpp:|ftp:",
    "emoji": r":[a-z0-9_+-]+:",
    "formula": r"\$",
    "footnote": r"\[\^",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A rendered page: its blocks in order, its links and images, its text and its code."""

    blocks: tuple[str, ...]
    links: tuple[str, ...]
    faults: tuple[str, ...]
    code: tuple[str, ...]


def rendered(markdown: str) -> Page:
    """`markdown` as GitHub's reader sees it."""
    done = subprocess.run(
        [
            _cmark(),
            "--unsafe",
            *(part for name in _EXTENSIONS for part in ("-e", name)),
            "--to",
            "xml",
        ],
        input=markdown.encode("utf-8"),
        capture_output=True,
        check=True,
    )
    # Its XML has no name for footnotes.
    tree = done.stdout.replace(b"<unknown>", b"footnote")
    root = ET.fromstring(tree)  # noqa: S314  # made by the reader, not by an agent
    nodes = [(node.tag.removeprefix(_NAMESPACE), node) for node in root.iter()]
    raw = "".join(node.text or "" for kind, node in nodes if kind in {"html_block", "html_inline"})
    tags = _Tags()
    tags.feed(raw)
    tags.close()
    texts = [_text_of(block) for kind, block in nodes if kind not in _INLINE]
    faults = [
        *(f"a {kind}" for kind, _ in nodes if kind not in _NODES or kind == "image"),
        *tags.faults,
        *_alive("\0".join([*texts, tags.text])),
        *(f"hidden {ord(sign):x}" for sign in sorted(set(markdown)) if _is_hidden(sign)),
    ]
    return Page(
        blocks=tuple(kind for kind, _ in nodes if kind not in _INLINE),
        links=tuple(node.get("destination", "") for kind, node in nodes if kind == "link"),
        faults=tuple(faults),
        code=tuple(node.text or "" for kind, node in nodes if kind in {"code", "code_block"}),
    )


@cache
def _cmark() -> str:
    if (found := shutil.which(_PROGRAM)) is not None:
        return found
    may = () if os.geteuid() == 0 else ("sudo", "-n")
    if any(shutil.which(program) is None for program in ("apt-get", *may[:1])):
        pytest.skip(f"{_PROGRAM} is not installed (apt install {_PROGRAM})")
    quiet = (*may, "apt-get", "-qq", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300")
    for command in (("update",), ("install", "-y", "--no-install-recommends", _PROGRAM)):
        subprocess.run(
            [*quiet, *command],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            check=False,
        )
    if (found := shutil.which(_PROGRAM)) is None:
        pytest.skip(f"{_PROGRAM} could not be installed (apt install {_PROGRAM})")
    return found


def _text_of(block: ET.Element) -> str:
    """The text of a block that stands outside of code, links and blocks of its own."""
    return "".join(_texts(block))


def _texts(node: ET.Element) -> Iterator[str]:
    for child in node:
        kind = child.tag.removeprefix(_NAMESPACE)
        if kind == "text":
            yield child.text or ""
        elif kind in {"emph", "strong"}:
            yield from _texts(child)
        elif kind in {"softbreak", "linebreak"}:
            yield "\n"
        else:
            yield "\0"  # what stands on both sides of it is not one word


def _alive(text: str) -> Iterator[str]:
    for name, pattern in _LIVE.items():
        if found := re.search(pattern, text):
            yield f"{name}: {text[max(found.start() - 20, 0) : found.end() + 20]!r}"


def _is_hidden(sign: str) -> bool:
    return unicodedata.category(sign) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} and sign != "\n"


class _Tags(HTMLParser):
    """The HTML of a page: which tags, whether they are closed in order, the text outside code."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.text = ""
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS or attrs:
            self.faults.append(f"<{tag} {attrs}>")
        if tag != "br":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> out of order")

    def handle_comment(self, data: str) -> None:
        if not data.startswith((" backstop-gate:", " backstop-run: {", " backstop-agent: {")):
            self.faults.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.faults.append(f"<!{decl}>")

    def unknown_decl(self, data: str) -> None:
        self.faults.append(f"<![{data}]>")

    def handle_pi(self, data: str) -> None:
        self.faults.append(f"<?{data}>")

    def handle_data(self, data: str) -> None:
        if "code" not in self._open:
            self.text += data

    def close(self) -> None:
        super().close()
        self.faults += [f"<{tag}> is not closed" for tag in self._open]
