"""The one place where text from an agent is made harmless.

Arguments, results, run and tool names come from models, users and mails. Shown as they
are they could clear a terminal, forge a line of the report, or show one vendor's name
where another stands (bidirectional controls). What cannot be seen is spelled out.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final

# Controls, formats (bidi, zero width, tags), surrogates, private and unassigned code points,
# and the separators that begin a new line or look like an ordinary blank.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_MAX_MARKS: Final = 4


def plain(text: str, *, limit: int | None = None) -> str:
    r"""`text` on one line, hidden characters as ``\n`` or ``\u{202e}``, cut to `limit` characters.

    What is cut is said: the text then ends in ``…``.
    """
    cut = limit is not None and len(text) > limit
    kept = text[: limit if limit is None else max(limit - 1, 0)] if cut else text
    if kept.isascii() and kept.isprintable():
        return kept + "…" * cut
    shown: list[str] = []
    marks = 0
    for character in kept:
        category = unicodedata.category(character)
        # A tower of combining marks grows over the lines above it.
        marks = marks + 1 if category in {"Mn", "Me"} else 0
        if character in _SHORT:
            shown.append(_SHORT[character])
        elif category in _HIDDEN or marks > _MAX_MARKS or (category == "Zs" and character != " "):
            shown.append(f"\\u{{{ord(character):x}}}")
        else:
            shown.append(character)
    return "".join(shown) + "…" * cut


def brief(text: str, limit: int) -> str:
    """`plain` text of at most `limit` characters, its escapes counted and never cut."""
    return _cut(plain(text, limit=limit), limit)


_PARTIAL: Final = re.compile(r"\\(u(\{[0-9a-f]*)?)?$")
_IN_SPAN: Final = str.maketrans({"`": "\\u{60}", "|": "\\u{7c}"})
_AT_EDGE: Final = (" ", "$")
_BLANK: Final = "`(blank)`"


def code(text: str, *, limit: int | None = None) -> str:
    """`text` as a Markdown code span, whole also in the cell of a table.

    What stands in a code span is neither link nor mention, reference, emoji, HTML or formula.
    `limit` bounds the characters between the backticks; a text of blanks is named `(blank)`.
    """
    shown = _cut(plain(text, limit=limit).translate(_IN_SPAN), limit)
    if not shown.strip():
        return _BLANK
    # A blank at an edge would be stripped, and a dollar there would make a formula of the span.
    edge = " " if shown.startswith(_AT_EDGE) or shown.endswith(_AT_EDGE) else ""
    return f"`{edge}{shown}{edge}`"


def _cut(shown: str, limit: int | None) -> str:
    """At most `limit` characters, never ended inside an escape of ours."""
    if limit is None or len(shown) <= limit:
        return shown
    return _PARTIAL.sub("", shown[: max(limit - 1, 0)]) + "…"


# Words that nothing makes a link of: no digits but in short numbers, no dots or slashes inside.
_WORD: Final = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|[A-Za-z][a-z]*(?:-[a-z]+)+", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,6}%?|[0-9]{1,3}(?:,[0-9]{3})+", re.ASCII)
_COMMIT: Final = re.compile(r"[0-9a-f]{7,40}", re.IGNORECASE | re.ASCII)
_TOKEN: Final = re.compile(r"(\(?)(.*?)([.,;:!?)]*)", re.ASCII)


def prose(text: str, *, limit: int | None = None) -> str:
    """`text` as running Markdown: plain words and small numbers stand as they are.

    Everything else is put into code spans, a run of it into one: what is not a word cannot
    become a link, a mention, a mark-up or the start of a block. `limit` bounds what is shown
    but for the backticks.
    """
    shown: list[str] = []
    strange: list[str] = []
    for token in (plain(text) if limit is None else brief(text, limit)).split():
        opening, inner, closing = _parts(token)
        if opening or _harmless(inner):
            _flush(strange, shown)
        if _harmless(inner):
            shown.append(f"{opening}{inner}{_closed(inner, closing)}")
            continue
        strange.append(inner or token)
        if inner and (closing or opening):
            _flush(strange, shown, before=opening, after=closing)
    _flush(strange, shown)
    return " ".join(shown) or _BLANK


def _parts(token: str) -> tuple[str, str, str]:
    found = _TOKEN.fullmatch(token)
    return ("", token, "") if found is None else (found[1], found[2], found[3])


def _harmless(word: str) -> bool:
    if _NUMBER.fullmatch(word):
        return True
    return _WORD.fullmatch(word) is not None and _COMMIT.fullmatch(word) is None


def _closed(word: str, closing: str) -> str:
    # `7.` and `7)` begin a list where they begin a line.
    return f"\\{closing}" if closing and word.isdecimal() else closing


def _flush(strange: list[str], shown: list[str], *, before: str = "", after: str = "") -> None:
    if strange:
        shown.append(f"{before}{code(' '.join(strange))}{after}")
        strange.clear()


def in_html(text: str, *, limit: int | None = None) -> str:
    """`text` as an HTML ``code`` element, for where Markdown is not read (a summary line)."""
    shown = _cut(plain(text, limit=limit), limit)
    return f"<code>{html.escape(shown) if shown.strip() else '(blank)'}</code>"


def in_comment(text: str) -> str:
    """JSON text for inside an HTML comment: it cannot end the comment; equal as JSON."""
    return in_json(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "-\\u002d")


def fenced(text: str, *, language: str = "text") -> str:
    """`text` as a fenced block, line by line; `language` is ours."""
    lines = [plain(line) for line in text.split("\n")]
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{language}", *lines, fence])


_SECRETS: Final = tuple(
    (re.compile(pattern, re.ASCII | re.IGNORECASE * loose), f"[{name}]")
    for name, loose, pattern in (
        ("address", False, r"(?<!\S)[^\s@]+@[^\s@]*\.[A-Za-z\u0080-\uffff]{2,}\S*"),
        ("secret", True, r"\b(?:bearer|basic)\s+(?=\S*[0-9=])\S{6,}"),
        (
            "secret",
            True,
            (
                r"(?:password|passwd|secret|token|api[_-]?key|credential)[\w-]{0,20}"
                r"[\"']?(?:\s{0,3}=\s{0,3}\S+|:[\"']?\S+|\s{0,3}:\s{1,3}(?=\S*[0-9])\S+)"
            ),
        ),
        (
            "secret",
            False,
            (
                r"\b(?:sk|pk|rk|gh[opsur]|github_pat|glpat|xox[abeprs]|AKIA|ASIA|AIza|ya29|eyJ)"
                r"[\w./+=-]{8,}"
            ),
        ),
        ("number", False, r"(?<![\w-])[0-9](?:[ -]?[0-9]){8,}(?![\w-])"),
        ("secret", False, r"(?<![\w:])[0-9a-fA-F]{32,}(?!\w)"),
        (
            "secret",
            False,
            (
                r"(?<![\w+/=-])(?=[\w+/=-]{0,200}[A-Z])(?=[\w+/=-]{0,200}[a-z])"
                r"(?=[\w+/=-]{0,200}[0-9])[\w+/=-]{24,}"
            ),
        ),
    )
)
_READ: Final = 2_000


def public(text: str) -> str:
    """`text` without what looks like an address, a secret or an account number, whole (G25).

    For places that anybody may read. It knows forms, not meanings: what personal data an
    agent may keep is declared by `redact`. A very long text is cut after a blank.
    """
    if len(text) > _READ:
        text = text[:_READ].rpartition(" ")[0] + " …"
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


_NOT_ASCII: Final = re.compile("[^\x20-\x7e]")


def in_json(text: str) -> str:
    r"""JSON text with hidden characters spelled ``\u202e``; equal as JSON, harmless to see."""
    return _NOT_ASCII.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    character = found[0]
    if unicodedata.category(character) not in _HIDDEN:
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
