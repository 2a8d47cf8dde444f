"""Finds what went out under another key rule, before a call is claimed (semantics.md K3).

A rule is a tool's declaration; a store's header holds every one that its rows were written
under. A call is looked up under the others, too: a record that is the same effect by today's
rule is the one that answers. Where there is none, the other keys are barred as the call is
claimed, since a process of another version may still ask under them (ADR 0020).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from backstop.core.canon import Json, NotCanonical, canonical, parse
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import EffectFailed, Failure, Header
from backstop.core.identity import identify, rekey
from backstop.core.keying import respelled
from backstop.core.lifecycle import Phase
from backstop.core.redaction import Redaction, RedactionKey
from backstop.errors import IdentityError
from backstop.guard.calls import Call
from backstop.guard.claims.desk import MOVED
from backstop.ports import Custody, Standing

_MAY_BE_CLAIMED: Final = frozenset({Phase.RETRYABLE, Phase.REOPENED})

_NOTES: Final = frozenset({"description", "title", "examples"})
_NAMED: Final = frozenset({"properties", "$defs", "definitions"})
_VALUES: Final = frozenset({"default", "const", "enum", "required"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A call under the key by which the store knows its effect; `bars` are its other names."""

    call: Call
    bars: tuple[Call, ...] = ()


class OldKeys:
    """Looks calls up in one store; where a tool has had one rule only, that costs nothing."""

    def __init__(self, *, namespace: Namespace, redaction_key: RedactionKey | None = None) -> None:
        self._namespace = namespace
        self._redaction = Redaction(key=redaction_key)
        self._seen: Mapping[str, Declaration] = {}
        self._others: dict[str, tuple[Declaration, ...]] = {}

    def others(self, declaration: Declaration, header: Header) -> tuple[Declaration, ...]:
        """The other rules under which rows of the same tool may have been written."""
        if header.declarations is not self._seen:
            self._seen = header.declarations
            self._others.clear()
        known = self._others.get(declaration.digest)
        if known is None:
            ours = _meaning(declaration)
            several = {
                _meaning(one): one
                for one in self._seen.values()
                if one.effect and _is_one(one, declaration)
            }
            several.pop(ours, None)
            known = self._others[declaration.digest] = tuple(several.values())
        return known

    def known_as(
        self, call: Call, arguments: Mapping[str, Any], custody: Custody, header: Header
    ) -> Known:
        """The name under which the store holds the effect of `call`; its own if there is none.

        `arguments` are the call's as they came: what a rule redacts today, a former one may
        have kept. Raises what the store raises that cannot be read, and `NoRedactionKey`.
        """
        names = self._names(call, arguments, header)
        ours = {call.named.key, *names}
        free: list[Call] = []
        open_: list[Call] = []
        for key, former in names.items():
            found = next(iter(custody.standings(key)), None)
            if found is None:
                free.append(former)
            elif _moved_to(found) in ours:
                continue  # barred for a name that is looked up by itself
            elif (same := self._is_same(found, former, call, header)) is not None:
                if same and found.phase in _MAY_BE_CLAIMED:
                    open_.append(_named_as(former, found, header))
                elif found.phase is Phase.RETRYABLE:
                    # Nothing happened there, and what is asked for now has other arguments.
                    free.append(former)
                else:
                    return Known(call=_named_as(former, found, header) if same else former)
        return self._not_begun(call, free, open_, custody, ours)

    def _not_begun(
        self,
        call: Call,
        free: list[Call],
        open_: list[Call],
        custody: Custody,
        ours: Container[str],
    ) -> Known:
        """The name to claim where no record says what became of the effect.

        One that was claimed before and is open again keeps its name, which a provider may know;
        but what stands under today's own decides first.
        """
        known = call
        if open_:
            own = next(iter(custody.standings(call.named.key)), None)
            if own is None or own.phase in _MAY_BE_CLAIMED or _moved_to(own) in ours:
                known = open_[0]
                free = [*free, call]
        bars = tuple(
            one for one in free if one.named.key != known.named.key and self._may_be_kept(one, call)
        )
        return Known(call=known, bars=bars)

    def _names(self, call: Call, arguments: Mapping[str, Any], header: Header) -> dict[str, Call]:
        """The call under each other rule that names it otherwise: by another key or fingerprint.

        A parameter that was added with a default makes another fingerprint of the same call.
        """
        names: dict[str, Call] = {}
        others = self.others(call.declaration, header)
        # A key that the caller's function made is among the kept arguments only.
        given = {**_object(call.args), **arguments} if others else {}
        spelled = _object(msgspec.Raw(canonical(given).encode()))
        for rule in others:
            former = self._under(rule, call, spelled)
            if former is not None and _name(former) != _name(call):
                names.setdefault(former.named.key, former)
        return names

    def _under(self, rule: Declaration, call: Call, arguments: Mapping[str, Json]) -> Call | None:
        """The call as `rule` would have named it; None if that could not name it."""
        try:
            spelled = self._redaction.arguments(
                respelled(arguments, now=call.declaration, former=rule), rule
            )
            named = identify(
                spelled,
                rule,
                namespace=self._namespace,
                run=call.attempt.run,
                step=call.attempt.step,
            )
        except (IdentityError, NotCanonical):
            return None
        return msgspec.structs.replace(
            call,
            tool=rule.tool,
            declaration=rule,
            named=named,
            args=msgspec.Raw(canonical(dict(spelled)).encode()),
        )

    def _is_same(self, found: Standing, former: Call, call: Call, header: Header) -> bool | None:
        """Whether a record is of this very call; None if it is another effect by today's rule.

        A former rule may have given one key to what are two effects today. Where today's rule
        has no name for the record, since it lacks an argument, or its arguments were erased,
        the former one's word stands.
        """
        claimed = found.claimed
        try:
            now = rekey(
                self._redaction.arguments(_object(claimed.args), call.declaration),
                written_under=header.declarations.get(claimed.decl, former.declaration),
                candidate=call.declaration,
                namespace=self._namespace,
                run=claimed.run,
                step=claimed.step,
            )
        except (IdentityError, NotCanonical):
            return claimed.fingerprint == former.named.fingerprint
        if now.key != call.named.key:
            return None
        return now.fingerprint == call.named.fingerprint

    def _may_be_kept(self, former: Call, call: Call) -> bool:
        """Whether a row under a former rule would hold nothing that is redacted today."""
        spelled = _object(former.args)
        return self._redaction.arguments(spelled, call.declaration) == spelled


def _meaning(declaration: Declaration) -> str:
    """What of a declaration may name a call otherwise: all but the notes in its schema."""
    bare = msgspec.structs.replace(declaration, schema=_bare(declaration.schema))
    return canonical(msgspec.to_builtins(bare))


def _bare(schema: Any) -> Any:  # noqa: ANN401 - a part of a JSON Schema
    if isinstance(schema, list):
        return [_bare(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        word: said if word in _VALUES else _named(said) if word in _NAMED else _bare(said)
        for word, said in schema.items()
        if word not in _NOTES
    }


def _named(schemas: Any) -> Any:  # noqa: ANN401 - schemas by names that mean nothing
    return (
        {name: _bare(part) for name, part in schemas.items()} if isinstance(schemas, dict) else {}
    )


def _name(call: Call) -> tuple[str, str]:
    return call.named.key, call.named.fingerprint


def _is_one(one: Declaration, other: Declaration) -> bool:
    """Whether two declarations speak of one tool, under whatever name."""
    names = {other.tool, *other.aliases}
    return one.tool in names or other.tool in one.aliases


def _named_as(former: Call, found: Standing, header: Header) -> Call:
    """The call as its record has it, word for word: a row must be true to its own key."""
    claimed = found.claimed
    return msgspec.structs.replace(
        former,
        declaration=header.declarations.get(claimed.decl, former.declaration),
        named=replace(former.named, fingerprint=claimed.fingerprint),
        args=claimed.args,
    )


def _moved_to(found: Standing) -> str | None:
    """The key under which the effect is kept for which this one was barred; None if it was not."""
    match found.settled:
        case EffectFailed(error=Failure(type=kind, message=key)) if kind == MOVED:
            return key
        case _:
            return None


def _object(text: msgspec.Raw) -> dict[str, Json]:
    value = parse(bytes(text))
    return value if isinstance(value, dict) else {}
