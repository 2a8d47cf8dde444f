"""Calls under one set of key rules: those that history holds, and those a candidate asks for.

The driver computes every key by itself, from the arguments as they came over the wire;
nothing that the candidate says about keys is believed. Recorded calls are keyed anew where
they were written under other rules (semantics.md K2, K3), so that both sides compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from backstop.core.canon import CANON_VERSION, Json, NotCanonical, canonical, digest, parse
from backstop.core.declaration import Declaration, Scope, completed
from backstop.core.history import Outcome, Row
from backstop.core.identity import Identified, identify, identify_read, rekey
from backstop.core.keying import Rules
from backstop.core.pairing import Side
from backstop.core.runs import Read, Step
from backstop.errors import IdentityError
from backstop.replay.wire import ToolSeen


@dataclass(kw_only=True, eq=False)
class Known:
    """One recorded call of a run under the rules; compared by identity.

    `superseded` marks a try that a later attempt of its step made anew (S1): it answers
    nothing.
    """

    call: Row | Read
    run: str
    step: Step
    rules: Rules
    superseded: bool = False

    @property
    def index(self) -> int:
        """Place of the claim, or of the read, in the ledger."""
        return self.call.index

    @property
    def attempt(self) -> int:
        """The attempt that asked."""
        return self.call.attempt if isinstance(self.call, Row) else self.call.event.attempt

    @property
    def id(self) -> str:
        """The call id under which the recorded agent knew it."""
        return self.call.call if isinstance(self.call, Row) else self.call.event.call

    @property
    def name(self) -> str:
        """The tool's name as recorded."""
        return self.call.tool if isinstance(self.call, Row) else self.call.event.tool

    @property
    def tool(self) -> str:
        """The tool's name under the rules: an alias is its tool."""
        return self.declaration.tool

    @property
    def is_failed(self) -> bool:
        """Did the recorded call certainly not happen?"""
        return isinstance(self.call, Row) and self.call.outcome is Outcome.FAILED

    @cached_property
    def declaration(self) -> Declaration:
        """What the call is keyed under."""
        return self.rules.judged(self.name)

    @cached_property
    def written_under(self) -> Declaration:
        """What the call was keyed under when it was written."""
        if isinstance(self.call, Row):
            return self.rules.written_under(self.call)
        recorded = self.rules.recorded.get(self.call.event.decl)
        return recorded or self.rules.declared.get(self.name) or Declaration(tool=self.name)

    @property
    def raw(self) -> msgspec.Raw:
        """The arguments as recorded."""
        return self.call.args if isinstance(self.call, Row) else self.call.event.args

    @cached_property
    def args(self) -> Mapping[str, Json]:
        """The arguments as recorded; none where they are no object."""
        try:
            value = parse(bytes(self.raw))
        except NotCanonical:
            return {}
        return value if isinstance(value, dict) else {}

    @cached_property
    def identified(self) -> Identified | None:
        """The call under the rules; None if it has no key under them."""
        declaration, written = self.declaration, self.written_under
        try:
            if declaration.effect:
                return rekey(
                    self.args,
                    written_under=written,
                    candidate=declaration,
                    namespace=self.rules.namespace,
                    run=self.run,
                    step=self.step.id,
                )
            # A default is what it was when the row was written (K2), also for a read.
            defaults = written.defaults if written.defaults != declaration.defaults else {}
            return identify_read(
                {**defaults, **self.args},
                declaration,
                namespace=self.rules.namespace,
                run=self.run,
                step=self.step.id,
            )
        except (IdentityError, NotCanonical):
            return None

    @cached_property
    def _is_current(self) -> bool:
        current = self.rules.canon == CANON_VERSION
        return current and self.written_under == self.declaration

    @cached_property
    def key(self) -> str:
        """The key under the rules, which is the stored one where nothing changed."""
        stored = self.call.key if isinstance(self.call, Row) else self.call.event.key
        if stored and self._is_current:
            return stored
        return self.identified.key if self.identified else stored

    @cached_property
    def fingerprint(self) -> str:
        """Digest of all arguments under the rules."""
        if isinstance(self.call, Row) and self._is_current:
            return self.call.fingerprint
        return self.identified.fingerprint if self.identified else digest(bytes(self.raw))

    @cached_property
    def side(self) -> Side:
        """What pairing sees of it."""
        found = self.identified
        return Side(
            run=self.run,
            step=self.step.id,
            identity=found.identity if found else self.args,
            arguments=found.arguments if found else self.args,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One call that the candidate asks for.

    `identified` is None where it has no key, and `unkeyed` then says why. `tool` is its name
    under the rules, `name` as it was asked.
    """

    run: str
    step: Step
    tool: str
    name: str
    args: Mapping[str, Json]
    effect: bool
    identified: Identified | None
    agent: str = ""
    call: str = ""
    unkeyed: str = ""

    @property
    def key(self) -> str:
        """The key, empty where there is none."""
        return self.identified.key if self.identified else ""

    @property
    def fingerprint(self) -> str:
        """The fingerprint, empty where there is no key."""
        return self.identified.fingerprint if self.identified else ""

    @property
    def text(self) -> str:
        """The arguments, canonical."""
        return canonical(dict(self.args))


def key_ask(
    name: str,
    args: Mapping[str, Json],
    step: Step,
    rules: Rules,
    *,
    run: str,
    agent: str = "",
    call: str = "",
) -> Ask:
    """A call of the candidate under `rules`: effect or read by the base's declarations alone."""
    declaration = rules.judged(name)
    identify_as = identify if declaration.effect else identify_read
    identified, unkeyed = None, ""
    try:
        identified = identify_as(
            args, declaration, namespace=rules.namespace, run=run, step=step.id
        )
    except (IdentityError, NotCanonical) as refused:
        unkeyed = str(refused)
    return Ask(
        run=run,
        step=step,
        tool=declaration.tool,
        name=name,
        args=args,
        effect=declaration.effect,
        identified=identified,
        agent=agent,
        call=call,
        unkeyed=unkeyed,
    )


def declarations(
    base: Mapping[str, Declaration], tools: Sequence[ToolSeen]
) -> dict[str, Declaration]:
    """What the candidate is judged under, by tool: the base's rules, the candidate's schemas.

    Where the base is silent of what names an effect, the tool's own code says so. A tool of
    which neither speaks is an effect, named by all its arguments.
    """
    declared = dict(base)
    words = said(tools)
    for seen in tools:
        known = declared.get(seen.tool) or Declaration(tool=seen.tool)
        if seen.tool in words:
            known = completed(known, words[seen.tool])
        declared[seen.tool] = msgspec.structs.replace(known, schema=seen.schema)
    return declared


def said(tools: Sequence[ToolSeen]) -> dict[str, Declaration]:
    """What the code of tools says of what names their effects, by tool."""
    return {
        seen.tool: Declaration(
            tool=seen.tool,
            identity=seen.says.identity,
            scope=None if seen.says.scope is None else Scope(seen.says.scope),
            key=seen.says.key,
            fields={seen.says.param: ("volatile",)} if seen.says.param else {},
        )
        for seen in tools
        if seen.says is not None
    }
