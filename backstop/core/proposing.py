"""What to declare of a tool that nobody declared yet, and on what grounds.

A wrong word here is dangerous in one direction: what is called a read is not compared. So a
tool is a read only if its name, its description and its code all say so; whatever cannot be
seen is an effect. Identity is proposed where arguments name a target or a thing of its own;
where they only name a party (a customer may order twice), nothing is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a tool's code does, as far as it was read: places with what stands there.

    `is_whole` says that the code was there to read. `acts` change something outside, of
    `unknown` nobody can tell, `reads` only ask.
    """

    is_whole: bool = False
    acts: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A tool as it was found. `parameters` are JSON Schemas by name; `described` is its text.

    They are None where nobody knows them. `is_harmless` says that the framework brings the tool
    along, and that it only reads.
    """

    name: str
    parameters: Mapping[str, Any] | None = field(default_factory=dict)
    described: str = ""
    evidence: Evidence = Evidence()
    is_harmless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What to declare: an effect or a read and why, its identity if any and why, and hints.

    `key` are arguments that hold the caller's own idempotency key. `may_be_bare` says that a call
    may come without any argument, and is refused unless a scope is declared.
    """

    effect: bool
    why: str
    identity: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    why_identity: str = ""
    hints: tuple[str, ...] = ()
    may_be_bare: bool = False


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ACTING: Final = _set("""
    accept acknowledge activate add allocate announce append apply approve archive assign attach
    authorise authorize block broadcast buy cancel clear close commit complete configure confirm
    convey create deactivate decline delete deliver deploy deposit disable discard dispatch
    download drop emit enable enqueue escalate execute exit expire finalize finish fire forget
    forward generate grant hire increment ingest initiate insert install invite invoke issue
    kill launch make memorize merge modify move notify onboard overwrite patch pay persist
    promote provision publish purge push put reassign rebook redeem refund register reject
    remember remind remove rename renew reopen replace reply resend reserve reset resolve
    restart restore resume revoke rollback rotate save schedule sell send ship shutdown submit
    subscribe suspend swap sync terminate transfer trigger unblock unlock unsubscribe update
    upgrade upload upsert void withdraw write
    """)
"""Verbs that change something."""

_ACTING_FIRST: Final = _ACTING | _set("""
    access act ask bill book call change charge click copy credit debit do email fill forge
    handle import lock log mail mark message open order ping place post print process purchase
    record release report request respond return run set sign sms start stop store tell text
    ticket turn tweet use
    """)
"""Verbs that are nouns too: they act where a verb stands, as in ``book_flight``."""

_ACTING_TOLD: Final = _ACTING | _set("ask bill book charge credit debit email mail order request")
"""Those that a description begins with where a tool acts; every read returns or calls something."""

_READING: Final = _set("""
    browse calculate check compare compute count current describe detect determine diff estimate
    evaluate explain fetch find get has inspect is list load locate lookup look match measure peek
    poll preview query rank read retrieve search see select show summarize tail think track
    translate validate verify view whoami
    """)
_READING_NOUNS: Final = frozenset({"check", "lookup", "search", "query"})
_MORE: Final = frozenset({"and", "or", "then", "else", "if"})
_TOWARDS: Final = frozenset({"in", "out", "off", "away"})
"""``check_in`` is no check."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")


def words(name: str) -> list[str]:
    """The words of a name, in lower case: ``getVendor_byId`` is get, vendor, by, id."""
    return [found.lower() for found in _WORD.findall(name)]


def propose(seen: Seen) -> Proposal:
    """What to declare of a tool that was found."""
    if seen.is_harmless:
        return Proposal(effect=False, why="the framework's own tool, which only reads")
    why = _why_effect(seen)
    if why is None:
        verb = reading_word(seen.name)
        asks = f" ({seen.evidence.reads[0]})" if seen.evidence.reads else ""
        return Proposal(effect=False, why=f'the name says "{verb}", and the code only reads{asks}')
    key, identity, why_identity = _identity(seen)
    return Proposal(
        effect=True,
        why=why,
        identity=identity,
        key=key,
        why_identity=why_identity,
        hints=tuple(_hints(seen)),
        may_be_bare=not (key or identity) and _may_be_bare(seen.parameters),
    )


def _may_be_bare(parameters: Mapping[str, Any] | None) -> bool:
    """May a tool be called without any argument, as far as anybody knows?"""
    return parameters is None or all(
        isinstance(schema, Mapping) and "default" in schema for schema in parameters.values()
    )


def _why_effect(seen: Seen) -> str | None:
    """Why a tool counts as an effect; None for one that only reads, by all that there is."""
    found = seen.evidence
    said = acting_word(seen.name)
    told = _acting_description(seen.described)
    if found.acts:
        named = f'the name says "{said}", and ' if said else ""
        return f"{named}the code acts: {found.acts[0]}"
    if said:
        return f'the name says "{said}"'
    if told:
        return f'its description says "{told}"'
    if not reading_word(seen.name):
        return "its name does not say that it only reads"
    if not found.is_whole:
        return "its code cannot be seen from here"
    if found.unknown:
        return f"not all of its code can be seen: {found.unknown[0]}"
    return None


def acting_word(name: str) -> str:
    """The word of a tool's name that says it acts; empty if none does."""
    said = words(name)
    for at, word in enumerate(said):
        before = said[at - 1] if at else ""
        begins = at == 0 or before in _MORE
        if word in _ACTING or (begins and word in _ACTING_FIRST):
            return word
        if begins and word in _READING and said[at + 1 : at + 2] and said[at + 1] in _TOWARDS:
            return f"{word} {said[at + 1]}"
        if before in _MORE and word not in _READING:
            return f"{before} {word}"
    return ""


def reading_word(name: str) -> str:
    """The word of a tool's name that says it reads: one of its first two, or a noun at its end.

    Empty if none does.
    """
    said = words(name)
    for word in (*said[:2], *(_READING_NOUNS.intersection(said[-1:]))):
        if word in _READING:
            return word
    return ""


_SENTENCE: Final = re.compile(r"[.\n]")


def _acting_description(text: str) -> str:
    """The word in the first sentence of a description that says a tool acts."""
    first: str = _SENTENCE.split(text.strip(), maxsplit=1)[0]
    said = first.split()
    for at, raw in enumerate(said):
        word = raw.strip(",;:()`'\"").lower()
        stem = _stem(word)
        begins = at == 0 or said[at - 1].lower() in _MORE
        if begins and stem in _ACTING_TOLD:
            return word
    return ""


def _stem(word: str) -> str:
    """A verb without its ending, as far as that makes one that is known."""
    for ending, instead in (("s", ""), ("es", ""), ("ies", "y"), ("ing", ""), ("ing", "e")):
        if word.endswith(ending) and (cut := word.removesuffix(ending) + instead) in _ACTING_TOLD:
            return cut
    return word


_OWN: Final = _set("""
    booking confirmation guid iban invoice isbn no nr num number order po ref reference reservation
    sku slug ticket tracking uuid
    """)
_CODED: Final = _set("booking confirmation coupon discount promo reservation tracking voucher")
_PARTY: Final = _set("""
    account actor agent author board bucket buyer channel client company contact customer database
    dataset employee folder guest member merchant organisation organization owner passenger patient
    person profile project seller session shop site supplier table team tenant user vendor workspace
    """)
"""For whom, or wherein. One of them may ask for several things."""

_RECIPIENT: Final = _set("to recipient recipients addressee email mail phone msisdn attendees")
_TOPIC: Final = _set("subject topic title about")
"""What tells messages to one recipient apart."""

_NEVER: Final = _set("""
    amount body comment comments content count date datetime days description details due duration
    hours info limit message minutes note notes page price prompt quantity query reason sum summary
    text time timestamp total value currency password token secret size
    """)
_KEYS: Final = frozenset({"idempotency_key", "idempotency_token", "dedup_key", "dedupe_key"})
_MAKING: Final = _set("""
    add book buy clone copy create duplicate export fork generate hire import initiate insert issue
    launch make onboard open order pay place post provision purchase register request reserve
    schedule send start submit transfer
    """)
"""Verbs that bring forth a thing of its own, whatever party it is for."""


def _identity(seen: Seen) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Key arguments, identity arguments, and why these or none."""
    if seen.parameters is None:
        return (), (), "undeclared, so all arguments name it: nobody knows which those are"
    keys = tuple(name for name in seen.parameters if "_".join(words(name)) in _KEYS)
    if keys:
        return keys, (), f"{keys[0]}: the caller's own key"
    if not seen.parameters:
        return (), (), "it takes no arguments: once in a run; say `scope: step` if that is too few"
    named = list(_naming(seen.parameters))
    if target := [one for one in named if _is_target(one[0], seen.name)]:
        named = target
    kinds = {kind for _, kind in named}
    if "recipient" not in kinds:
        named = [one for one in named if one[1] != "topic"]
    # What a tool makes has no id before: ids that it is handed are of what it is made for or of.
    ids = {"own"} if _makes(seen.name) else {"own", "id"}
    apart = kinds & {"own", "topic"} if "recipient" in kinds else kinds & ids
    if not target and not apart:
        return (), (), _undeclared([name for name, _ in named])
    told = ", ".join(f"{name} ({_TOLD[kind]})" for name, kind in named)
    return (), tuple(name for name, _ in named), told


def _makes(tool: str) -> bool:
    """Does a tool make something new, by the verb that its name begins with?"""
    return not _MAKING.isdisjoint(words(tool)[:2])


def _is_target(argument: str, tool: str) -> bool:
    """Does an argument hold the id of what the tool's name says it changes?"""
    if _makes(tool):
        return False
    *noun, last = words(argument)
    named = {word.removesuffix("s") for word in words(tool)}
    of_it = bool(noun) and {word.removesuffix("s") for word in noun} <= named
    return of_it and last in {"id", "ids", "number", "ref", "name"}


_TOLD: Final = {
    "own": "names one thing",
    "id": "an id",
    "party": "whom it is for",
    "recipient": "whom it reaches",
    "topic": "tells messages apart",
}


def _undeclared(parties: Sequence[str]) -> str:
    if not parties:
        return "undeclared, so all arguments name it: none of them is an id or a reference"
    return (
        f"undeclared, so all arguments name it: {parties[0]} alone would make one of all that is "
        "done for it in a run"
    )


def _naming(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Arguments that may name a target, in the order of the schema, and how each does."""
    for name, schema in parameters.items():
        if _is_naming_type(schema) and (kind := _kind(words(name))):
            yield name, kind


def _is_naming_type(schema: object) -> bool:
    """Text or a whole number, or may be either; never a structure, a fraction or a yes or no."""
    if not isinstance(schema, Mapping):
        return True
    told = schema.get("type")
    if isinstance(schema.get("anyOf"), list):
        told = [one.get("type") for one in schema["anyOf"] if isinstance(one, Mapping)]
    types = {str(one).lower() for one in (told if isinstance(told, list) else [told])}
    if "default" in schema:
        return False  # one that is left out names nothing
    return not types & {"number", "boolean", "object"} and (
        "array" not in types or _is_list_of_text(schema)
    )


def _is_list_of_text(schema: Mapping[str, Any]) -> bool:
    items = schema.get("items")
    return isinstance(items, Mapping) and str(items.get("type")).lower() == "string"


def _kind(said: Sequence[str]) -> str:
    """How an argument of these words names something; empty if it does not."""
    if not said or (said[-1] in _NEVER and said[-1] != "to"):
        return ""
    last, before = said[-1], set(said[:-1])
    if last == "key" and not before & _OWN:
        return ""  # of a table: what is put there a second time may be something else
    if last in {"id", "ids", "key"}:
        if before & _PARTY:
            return "party"
        return "own" if before & _OWN else "id" if before else "own"
    if last == "number" and before & _RECIPIENT:
        return "recipient"
    if last in _OWN or last.removesuffix("s") in _OWN or (last == "code" and before & _CODED):
        return "own"
    if last in _RECIPIENT or (last == "address" and before & {"email", "mail"}):
        return "recipient"
    if last in _TOPIC:
        return "topic"
    return "party" if last in _PARTY or last in {"username", "login"} else ""


_MOMENT: Final = frozenset({"timestamp", "now", "nonce", "trace", "correlation"})
_MOMENTS: Final = frozenset({"created_at", "sent_at", "requested_at", "request_id", "trace_id"})
_WORDED: Final = _set(
    "body message text content description reason note notes comment summary prompt"
)


def _hints(seen: Seen) -> Iterator[str]:
    """What a person may want to say of arguments; nothing of it is proposed."""
    for name in seen.parameters or ():
        said = words(name)
        if "_".join(said) in _MOMENTS or _MOMENT.intersection(said):
            yield f"{name} looks made up for each call: `fields: {{{name}: volatile}}` if it is"
        elif said and said[-1] in _WORDED:
            yield f"{name} looks worded by a model: `fields: {{{name}: generated}}` if it is"
