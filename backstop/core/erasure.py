"""Takes a person out of a ledger: what tells of them goes, what holds the ledger together stays.

A row that carries the subject, in plain or as the token of a redacted field, loses all that it
tells: arguments, results, session state, messages, models' answers, reasons. Its key, its
fingerprint and what happened stay, so that nothing goes out again and nothing is skipped. What
settled an erased call is erased with it. A run with erased rows cannot be replayed any more.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, get_args

import msgspec

from backstop.core.canon import Json, NotCanonical, canonical, parse
from backstop.core.declaration import Declaration
from backstop.core.events import Event, Failure
from backstop.core.fields import normalise
from backstop.core.redaction import NoRedactionKey, RedactionKey, redacted_fields, token
from backstop.core.sealing import Sealer, each_line, kind_of, open_event, open_header

ERASED: Final = msgspec.Raw(b'{"backstop":"erased"}')
"""Stands where something was that told of an erased person."""

_ERASED_TEXT: Final = msgspec.Raw(b'"erased"')

_PAYLOADS: Final = frozenset(
    {
        "actions",
        "args",
        "body",
        "events",
        "message",
        "response",
        "result",
        "state",
        "state_delta",
    }
)
"""Members that tell of what: they go as a whole."""

_WORDS: Final = frozenset({"error", "reason"})
"""Members whose text goes with the payloads of their row."""

_WHO: Final = frozenset({"by", "user"})
"""Members that go if they name the subject themselves."""

_NAMES: Final = frozenset(
    {"branch", "delivery", "override", "run", "session", "step", "trigger_key"}
)
"""Members that tell one thing that happened from another: without them it would happen again."""

_KNOWN: Final = {"t"} | {
    member.encode_name for kind in get_args(Event) for member in msgspec.structs.fields(kind)
}

_TELLING: Final = _PAYLOADS | _WORDS | _WHO

_SETTLEMENTS: Final = frozenset(
    {"effect_committed", "effect_failed", "effect_in_doubt", "effect_resolved", "effect_fenced"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whom to take out: any of `tokens`, or `plain` as a word or value, whatever its case.

    With `fields`, only what stands in members of these names counts.
    """

    plain: re.Pattern[str]
    tokens: frozenset[str]
    fields: frozenset[str] = frozenset()

    def is_in(self, value: object) -> bool:
        """Whether a JSON value tells of the subject."""
        return self._is_in(value, counts=not self.fields)

    def _is_in(self, value: object, *, counts: bool) -> bool:
        match value:
            case dict():
                return any(
                    (counts and self._is_named(name))
                    or self._is_in(item, counts=counts or name in self.fields)
                    for name, item in value.items()
                )
            case list():
                return any(self._is_in(item, counts=counts) for item in value)
            case str() if counts:
                return self._is_named(value) or self._is_within(value)
            case bool() | None:
                return False
            case _:
                return counts and self._is_named(canonical(value))

    def _is_named(self, text: str) -> bool:
        return self.plain.search(_folded(text)) is not None or any(
            one in text for one in self.tokens
        )

    def _is_within(self, text: str) -> bool:
        """JSON in text may spell a name in escapes."""
        if "\\" not in text or text[:1] not in {"{", "["}:
            return False
        try:
            return self._is_in(parse(text), counts=True)
        except NotCanonical:
            return False


def subject(
    text: str,
    declarations: Iterable[Declaration],
    *,
    key: RedactionKey | None,
    fields: Iterable[str] = (),
) -> Subject:
    """The person or thing that `text` names, under every spelling that `declarations` give it.

    Raises `NoRedactionKey` where they hold redacted fields and there is no key: nobody could
    find the tokens, and an erasure that misses half is none.
    """
    kinds = {kind for one in declarations for kind in redacted_fields(one).values()}
    if kinds and key is None:
        raise NoRedactionKey(
            "the ledger holds tokens, and without the key nobody can tell which are the subject's: "
            "set BACKSTOP_REDACTION_KEY, or BACKSTOP_REDACTION_KEY_FILE"
        )
    values = _values(text.strip())
    tokens = {token(value, kind, key) for kind in kinds for value in values if key is not None}
    spelled = {_folded(text)} | {
        _folded(found) for kind in kinds if isinstance(found := normalise(text.strip(), kind), str)
    }
    words = "|".join(re.escape(one) for one in sorted(spelled) if one)
    return Subject(
        plain=re.compile(rf"(?<!\w)(?:{words})(?!\w)"),
        tokens=frozenset(tokens),
        fields=frozenset(fields),
    )


def _values(text: str) -> list[Json]:
    """What a person may mean by a word: a number is another value than its text."""
    try:
        return [text, parse(text)]
    except NotCanonical:
        return [text]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip().casefold())


class Eraser:
    """Erases a subject from the lines of a ledger, each of which `look` is shown before.

    `rows` counts what was erased, by run; `named` the rows that name the subject where nothing
    can go: in their run's name, in an override.
    """

    def __init__(self, of: Subject) -> None:
        self._of = of
        self._keys: set[str] = set()
        self._counted: set[int] = set()
        self.rows: Counter[str] = Counter()
        self.named = 0

    def look(self, line: bytes) -> None:
        """Note whether this line is about the subject: what settles its call is erased too."""
        members = _members(line)
        if _text(members, "t") == "effect_claimed" and self._is_about(members):
            self._keys.add(_text(members, "key"))
        self.named += any(self._is_in(members, name) for name in _NAMES & members.keys())

    def erased(self, line: bytes) -> dict[str, msgspec.Raw] | None:
        """The members of a line without what told of the subject; None if nothing did."""
        members = _members(line)
        settles = _text(members, "t") in _SETTLEMENTS and _text(members, "key") in self._keys
        if not settles and not self._is_about(members):
            return None
        if (known := hash(line)) not in self._counted:  # a store may hold it in two places
            self._counted.add(known)
            self.rows[_text(members, "run")] += 1
        return {name: self._left(members, name) for name in members}

    def _is_about(self, members: Mapping[str, msgspec.Raw]) -> bool:
        telling = (name for name in members if name in _TELLING or name not in _KNOWN)
        return any(self._is_in(members, name) for name in telling)

    def _is_in(self, members: Mapping[str, msgspec.Raw], name: str) -> bool:
        return self._of.is_in({name: msgspec.json.decode(members[name])})

    def _left(self, members: Mapping[str, msgspec.Raw], name: str) -> msgspec.Raw:
        raw = members[name]
        if bytes(raw) == b"null":
            return raw
        if name in _PAYLOADS or (name not in _KNOWN and self._is_in(members, name)):
            return ERASED
        if name == "error":
            kind = msgspec.json.decode(raw, type=Failure).type
            return msgspec.Raw(msgspec.json.encode(Failure(type=kind, message="erased")))
        if name == "reason" or (name in _WHO and self._is_in(members, name)):
            return _ERASED_TEXT
        return raw


def _members(line: bytes) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(line, type=dict[str, msgspec.Raw])


def _text(members: Mapping[str, msgspec.Raw], name: str) -> str:
    value = msgspec.json.decode(members[name]) if name in members else None
    return value if isinstance(value, str) else ""


def is_erased(raw: msgspec.Raw) -> bool:
    """Whether something stood here that told of an erased person."""
    return bytes(raw) == bytes(ERASED)


def runs_erased(events: Iterable[Event]) -> dict[str, int]:
    """How many rows of each run were erased; runs that are whole are not named."""
    found: dict[str, int] = {}
    for event in events:
        if any(is_erased(raw) for raw in _payloads(event)):
            found[event.run] = found.get(event.run, 0) + 1
    return found


def _payloads(event: Event) -> Iterator[msgspec.Raw]:
    for name in _PAYLOADS:
        raw = getattr(event, name, None)
        if isinstance(raw, msgspec.Raw):
            yield raw


def erase_lines(
    read: Callable[[], Iterable[bytes]], eraser: Eraser, *, name: str
) -> Iterator[bytes]:
    """A ledger file without the subject, linked and sealed anew; unknown members are kept.

    `read` gives the chunks of the file, which must hold, at each call. Raises `LedgerError`.
    """
    for line in _events(read(), name=name):
        eraser.look(line)
    first = next(iter(each_line(read(), name=name)))
    sealer = Sealer(open_header(first, name=name))
    yield sealer.begin(first)
    for number, line in enumerate(_events(read(), name=name), start=2):
        members = eraser.erased(line) or _members(line)
        if head := sealer.head(_text(members, "run")):
            members["prev"] = msgspec.Raw(msgspec.json.encode(head))
        written = msgspec.json.encode(members)
        yield sealer.add_line(written, open_event(written, name=name, number=number))
    yield sealer.end()


def _events(chunks: Iterable[bytes], *, name: str) -> Iterator[bytes]:
    for number, line in enumerate(each_line(chunks, name=name)):
        if number and kind_of(line) != "seal":
            yield line
