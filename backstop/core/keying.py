"""Both sides of a comparison under one set of key rules (semantics.md K2, K3).

Rows keep their arguments, so that they can be keyed anew, in memory, under the rules that
the intents were keyed under. Where nothing changed, the stored key is taken as it is and
no argument is parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from backstop.core.canon import CANON_VERSION, Json, NotCanonical, canonical, parse
from backstop.core.declaration import Declaration, Namespace, Scope
from backstop.core.erasure import ERASED, is_erased
from backstop.core.history import History, Row
from backstop.core.identity import Identified, identify, rekey
from backstop.core.intents import FromLedger, Intent
from backstop.core.pairing import Side
from backstop.errors import IdentityError

S = TypeVar("S", bound=Row | Intent)

EVERY_RUN: Final = "*"
"""The group of calls whose key is unique over all runs (scope `agent`, G9)."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Under what a ledger and an intents file are compared.

    `recorded` are the declarations that rows name, by digest; `declared` those that the
    ledger's tools had last, by tool; `candidate` those that the candidate is judged under,
    by tool. `offered` are the tools that the candidate has, None where that is not known.
    `guarded` are the tools on which the candidate's guard sits (G7), `finds_old_keys` those
    whose guard looks a call up under every key rule that has rows (K3). `replayed` says that
    the intents come from a replay of this very ledger.
    """

    namespace: Namespace
    recorded: Mapping[str, Declaration] = field(default_factory=dict)
    declared: Mapping[str, Declaration] = field(default_factory=dict)
    candidate: Mapping[str, Declaration] = field(default_factory=dict)
    offered: frozenset[str] | None = None
    guarded: frozenset[str] = frozenset()
    finds_old_keys: frozenset[str] = frozenset()
    replayed: bool = False
    canon: int = CANON_VERSION

    def judged(self, tool: str) -> Declaration:
        """The declaration that calls of `tool` are keyed under; undeclared is an effect."""
        return self._judged.get(tool) or Declaration(tool=tool)

    @cached_property
    def _judged(self) -> dict[str, Declaration]:
        judged = {**self.declared, **self.candidate}
        for declaration in self.candidate.values():
            for alias in declaration.aliases:
                judged[alias] = declaration
        return judged

    def written_under(self, row: Row | FromLedger) -> Declaration:
        """The declaration that `row` was written under (K2)."""
        return (
            self.recorded.get(row.decl) or self.declared.get(row.tool) or Declaration(tool=row.tool)
        )

    def lost(self, tool: str) -> bool:
        """Does the candidate lack this tool (G6)?"""
        return self.offered is not None and tool not in self.offered

    def brought(self, tool: str) -> bool:
        """Did the ledger's declarations lack this tool (G6)?"""
        return tool not in self.declared


class Call(msgspec.Struct, Generic[S], kw_only=True, eq=False):
    """A row or an intent with its key under the rules; compared by identity.

    `group` is the run, or `EVERY_RUN`. `rekeyed` says that the stored key is another one.
    `place` is the call's place in its own file.
    """

    source: S
    tool: str
    key: str
    fingerprint: str
    group: str
    place: int
    rules: Rules
    declaration: Declaration
    rekeyed: bool = False
    _identified: Identified | None = None
    _side: Side | None = None

    @property
    def at(self) -> tuple[str, str]:
        """Run and step."""
        return self.source.run, self.source.step

    @property
    def is_erased(self) -> bool:
        """Whether nothing is left of the arguments: the call is known by its stored key alone."""
        return is_erased(self.source.args)

    @property
    def identified(self) -> Identified:
        """Identity and canonical arguments, worked out when first asked for."""
        if self._identified is None:
            if self.is_erased:
                self._identified = _nameless(self.key, self.fingerprint)
            else:
                self._identified = _identify(self.source, self.declaration, self.rules)
        return self._identified

    @property
    def side(self) -> Side:
        """What pairing sees of the call."""
        if self._side is None:
            found = self.identified
            holes = self.source.holes if isinstance(self.source, Intent) else ()
            self._side = Side(
                run=self.source.run,
                step=self.source.step,
                identity=found.identity,
                arguments=found.arguments,
                holes=frozenset(_argument(pointer) for pointer in holes),
            )
        return self._side


def _nameless(key: str, fingerprint: str) -> Identified:
    """What is known of an erased call."""
    return Identified(
        key=key,
        fingerprint=fingerprint,
        identity={},
        arguments={"backstop": "erased"},
        passed=bytes(ERASED).decode(),
        occurrence=0,
        override=None,
    )


def _argument(pointer: str) -> str:
    name = pointer.removeprefix("/").split("/", 1)[0]
    return name.replace("~1", "/").replace("~0", "~")


def respelled(
    arguments: Mapping[str, Json], *, now: Declaration, former: Declaration
) -> dict[str, Json]:
    """A call that is made under `now`, as it would have been spelled under `former`.

    What it leaves out means today's defaults: one that was another is spelled out. Raises
    `NotCanonical` for a bad default.
    """
    changed = {
        name: value
        for name, value in now.defaults.items()
        if name in former.parameters
        and (name not in former.defaults or canonical(former.defaults[name]) != canonical(value))
    }
    return {**changed, **arguments}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unkeyed:
    """A call that has no key under the rules, and why: it cannot be compared."""

    run: str
    step: str
    tool: str
    why: str


def incomparable(source: Row | Intent) -> Unkeyed:
    """An erased call that no key matched, in the words for a verdict."""
    why = "its arguments were erased, so nobody can say what it was"
    return Unkeyed(run=source.run, step=source.step, tool=source.tool, why=why)


def _arguments(source: Row | Intent) -> dict[str, Json]:
    arguments = parse(bytes(source.args))
    if not isinstance(arguments, dict):
        raise IdentityError(
            f"the arguments of {source.tool} in run {source.run}, step {source.step} are no "
            "JSON object; record or import them again",
            slug="not-canonical",
        )
    return arguments


def _identify(source: Row | Intent, declaration: Declaration, rules: Rules) -> Identified:
    arguments = _arguments(source)
    if isinstance(source, Row | FromLedger):
        return rekey(
            arguments,
            written_under=rules.written_under(source),
            candidate=declaration,
            namespace=rules.namespace,
            run=source.run,
            step=source.step,
        )
    return identify(
        arguments, declaration, namespace=rules.namespace, run=source.run, step=source.step
    )


RowCall: TypeAlias = Call[Row]
IntentCall: TypeAlias = Call[Intent]


def finds(row: RowCall, intent: IntentCall) -> bool:
    """K3: would the guard that sits on the intent's tool find this row before it claims?

    It looks the call up under the rule that the row was written under, as the call is spelled
    now: what only today's rule takes for the same target has another key there.
    """
    if intent.tool not in intent.rules.finds_old_keys:
        return False
    former = intent.rules.written_under(row.source)
    try:
        spelled = respelled(_arguments(intent.source), now=intent.declaration, former=former)
        named = identify(
            spelled,
            former,
            namespace=intent.rules.namespace,
            run=intent.source.run,
            step=intent.source.step,
        )
    except (IdentityError, NotCanonical):
        return False
    return named.key == row.source.key


def key_rows(history: History, rules: Rules) -> tuple[list[RowCall], list[Unkeyed]]:
    """The effects of a ledger, keyed under `rules`."""

    def is_current(row: Row, declaration: Declaration) -> bool:
        return rules.canon == CANON_VERSION and rules.written_under(row) == declaration

    return _key(history.rows, rules, is_current, lambda row: (row.tool, row.decl))


def key_intents(
    intents: Iterable[Intent], rules: Rules, keyed_under: Mapping[str, Declaration]
) -> tuple[list[IntentCall], list[Unkeyed]]:
    """Intents keyed under `rules`; `keyed_under` says what their stored keys were made under."""

    def is_current(intent: Intent, declaration: Declaration) -> bool:
        if isinstance(intent, FromLedger):
            return rules.written_under(intent) == declaration
        return keyed_under.get(intent.tool) == declaration

    def kind_of(intent: Intent) -> tuple[str, str]:
        return intent.tool, intent.decl if isinstance(intent, FromLedger) else ""

    return _key(intents, rules, is_current, kind_of)


def _key(
    sources: Iterable[S],
    rules: Rules,
    is_current: Callable[[S, Declaration], bool],
    kind_of: Callable[[S], tuple[str, str]],
) -> tuple[list[Call[S]], list[Unkeyed]]:
    """Key every call of an effect; what `is_current` says is asked once for each kind."""
    calls: list[Call[S]] = []
    unkeyed: list[Unkeyed] = []
    known: dict[tuple[str, str], tuple[Declaration, bool, bool]] = {}
    for place, source in enumerate(sources):
        kind = kind_of(source)
        if (told := known.get(kind)) is None:
            declaration = rules.judged(source.tool)
            told = declaration, declaration.scope is Scope.AGENT, is_current(source, declaration)
            known[kind] = told
        declaration, everywhere, current = told
        if not declaration.effect:
            continue
        call = Call(
            source=source,
            tool=declaration.tool,
            key=source.key,
            fingerprint=source.fingerprint,
            group=EVERY_RUN if everywhere else source.run,
            place=place,
            rules=rules,
            declaration=declaration,
        )
        if (current and source.key) or _keyed_anew(call, unkeyed):
            calls.append(call)
    return calls, unkeyed


def _keyed_anew(call: Call[S], unkeyed: list[Unkeyed]) -> bool:
    """Give `call` its key under the rules; one that has none is put aside with the reason."""
    source = call.source
    if call.is_erased:
        unkeyed.append(incomparable(source))
        return False
    try:
        found = call.identified
    except (IdentityError, NotCanonical) as refused:
        unkeyed.append(
            Unkeyed(run=source.run, step=source.step, tool=source.tool, why=str(refused))
        )
        return False
    call.rekeyed = bool(source.key) and found.key != source.key
    call.key, call.fingerprint = found.key, found.fingerprint
    return True
