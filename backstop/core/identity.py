"""Which arguments name an effect: the idempotency key, and the fingerprint of all of them.

K1. ``key = digest(["backstop.key", canon version, [agent, app, tenant], tool, identity,
scope, scope value, occurrence])``. The schema takes no part but by coercion and defaults.

A call goes through five stations: canonical text and strict parser; absent arguments take
their declared defaults (K2); values are read as the schema means them (`coerce`) and the text
of ``json`` fields is opened; override fields are taken out and volatile ones dropped, wherever
they stood; each field is normalised by its kinds.

*Identity declared*: exactly the named arguments, defaults filled in. One that is absent with
no default known is refused, unless the schema says that it is optional: then it is null.
All null is refused: unrelated calls would share one key.

*Identity undeclared*: the arguments that the caller passed, less those that equal their
default. So ``{a: 1, b: null}`` and ``{a: 1}`` have one key where b's default is null, and a
default that a version changes moves the fingerprint, not the key: MUTATED, not another
effect. A tool without any argument has no identity and needs a declared scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from backstop.core.canon import CANON_VERSION, Json, NotCanonical, canonical, digest
from backstop.core.declaration import Declaration, Namespace, Scope
from backstop.core.fields import (
    HIDDEN,
    coerce,
    normalise,
    normalise_fields,
    opened,
    picked,
    without,
)
from backstop.core.plain import spelled_members, text_of
from backstop.errors import IdentityError


class IdentityRefused(IdentityError):
    """A call gets no key, because one would be made up; the slug says why."""

    slug = "no-identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """A call with its key.

    `identity` are the arguments in the key. `arguments` are all canonical arguments, defaults
    filled in, without volatile and override fields; `fingerprint` is their digest (generated
    fields left out). `override` holds the override fields that were set, None if none was.
    `passed` is the canonical text of the arguments as the caller passed them.
    """

    key: str
    fingerprint: str
    identity: dict[str, Json]
    arguments: dict[str, Json]
    occurrence: Json
    override: dict[str, Json] | None
    passed: str = field(compare=False)


GENERATED: Final = frozenset({"generated"})
OVERRIDE: Final = frozenset({"override"})


def identify(
    arguments: Mapping[str, object],
    declaration: Declaration,
    *,
    namespace: Namespace,
    run: str,
    step: str,
    occurrence: int | str | None = None,
    explicit: Sequence[str] = (),
) -> Identified:
    """K1: the idempotency key and fingerprint of a call.

    `occurrence` overrules the declared one. `explicit` are keys that the caller brought along
    beside those in declared arguments: one stands in for the identity, two different ones are
    refused (K18). Raises `IdentityRefused` (``no-identity``, ``conflicting-keys``,
    ``not-canonical``).
    """
    call = _Call(arguments, declaration, declaration)
    return call.identified(
        call.target(explicit),
        namespace=namespace,
        run=run,
        step=step,
        occurrence=occurrence,
    )


def identify_read(
    arguments: Mapping[str, object],
    declaration: Declaration,
    *,
    namespace: Namespace,
    run: str,
    step: str,
) -> Identified:
    """The key of a call that changes nothing: by all arguments, never refused for identity.

    Raises `IdentityRefused` (``not-canonical``) for arguments without a canonical form.
    """
    call = _Call(arguments, declaration, declaration)
    return call.identified(call.undeclared(), namespace=namespace, run=run, step=step)


def rekey(
    arguments: Mapping[str, object],
    *,
    written_under: Declaration,
    candidate: Declaration,
    namespace: Namespace,
    run: str,
    step: str,
    occurrence: int | str | None = None,
) -> Identified:
    """K3: an old row under the candidate's rules; `arguments` are as the caller passed them.

    Absent arguments mean what they meant when the row was written (K2); all other rules are
    the candidate's. Raises `IdentityRefused` as `identify` does.
    """
    call = _Call(arguments, candidate, written_under)
    return call.identified(
        call.target(), namespace=namespace, run=run, step=step, occurrence=occurrence
    )


def complete(
    arguments: Mapping[str, Json], written_under: Declaration, candidate: Declaration | None
) -> dict[str, Json]:
    """K2: the arguments with the defaults that they were written under filled in.

    A parameter that declaration did not have takes the candidate's default: what a version
    adds with a default changes nothing about old calls. Without a schema nothing is known of
    parameters, so only the candidate can tell. Raises `NotCanonical` for a bad default.
    """
    added: dict[str, Json] = {}
    if candidate is not None and candidate is not written_under:
        known = written_under.parameters
        added = {name: v for name, v in candidate.defaults.items() if name not in known}
    return {**added, **written_under.defaults, **arguments}


def suggest(a: Json, b: Json) -> str | None:
    """The weakest field kind under which two different values become equal, if there is one.

    Of two mappings: the one kind that does it for every member that differs.
    """
    if canonical(a) == canonical(b):
        return None
    pairs = [(a, b)]
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            return None
        pairs = [(a[name], b[name]) for name in a if canonical(a[name]) != canonical(b[name])]
    for kind in _WEAKEST_FIRST:
        if all(_same_under(kind, left, right) for left, right in pairs):
            return kind
    return None


_WEAKEST_FIRST: Final = ("date-time", "money", "json", "set", "trim", "casefold", "email", "slug")


def _same_under(kind: str, a: Json, b: Json) -> bool:
    return canonical(normalise(a, (kind,))) == canonical(normalise(b, (kind,)))


def _explicit_key(explicit: Sequence[str], declaration: Declaration) -> str | None:
    if not explicit:
        return None
    keys = set(explicit)
    if len(keys) > 1:
        raise IdentityRefused(
            f"{declaration.tool}: {len(keys)} different idempotency keys were given for one "
            "call; give one",
            slug="conflicting-keys",
        )
    (key,) = keys
    if not key.strip():
        raise IdentityRefused(f"{declaration.tool}: the idempotency key that was given is blank")
    return key


class _Call:
    """The arguments of one call at the last of the five stations.

    `text` is the canonical text of what was passed, which `is_as_passed` where no station
    changed anything.
    """

    __slots__ = ("arguments", "declaration", "is_as_passed", "override", "passed", "text")

    def __init__(
        self, arguments: Mapping[str, object], declaration: Declaration, written_under: Declaration
    ) -> None:
        self.declaration = declaration
        try:
            self.text, given = spelled_members(arguments)
            filled = complete(given, written_under, declaration)
            seen = self._seen(filled)
            self.override = _overrides(seen, declaration)
            self.arguments = self._named(seen)
        except NotCanonical as fault:
            raise IdentityRefused(
                f"{declaration.tool}: the arguments have no canonical form: {fault} ({fault.slug})",
                slug="not-canonical",
            ) from None
        self.passed = given.keys()
        self.is_as_passed = seen is filled and len(filled) == len(given)

    def _seen(self, members: dict[str, Json]) -> dict[str, Json]:
        """What the arguments say, whether they came as values or as the texts of values."""
        declared = self.declaration
        if declared.schema and not declared.leaves(members):
            read = coerce(members, declared.schema)
            members = read if isinstance(read, dict) else members
        return opened(members, declared.fields) if declared.fields else members

    def _named(self, seen: dict[str, Json]) -> dict[str, Json]:
        """What of it is asked for: without hidden fields, in one spelling."""
        fields = self.declaration.fields
        return normalise_fields(without(seen, fields, HIDDEN), fields) if fields else seen

    def target(self, explicit: Sequence[str] = ()) -> dict[str, Json] | str:
        """What names the target: a key that the caller brought along, else the identity."""
        if not (explicit or self.declaration.key):
            return self.identity()
        keys = (*explicit, *self._brought())
        if (key := _explicit_key(keys, self.declaration)) is not None:
            return key
        if self.declaration.identity is None and self.declaration.key:
            # To key some calls by all arguments and others not would let one go out twice.
            raise self._refused(f"its key ({', '.join(self.declaration.key)}) is missing")
        return self.identity()

    def _brought(self) -> list[str]:
        """The caller's own keys in the arguments that are declared to hold one."""
        values = [self.arguments.get(name) for name in self.declaration.key]
        return [
            value if isinstance(value, str) else canonical(value)
            for value in values
            if value is not None
        ]

    def identity(self) -> dict[str, Json]:
        """The identity arguments; raises `IdentityRefused` if nothing names the target."""
        if self.declaration.identity is None:
            return self._undeclared_or_refused()
        identity = {name: self._argument(name) for name in self.declaration.identity}
        if not identity and self.declaration.scope is None:
            raise self._refused("its identity is declared empty, so a scope must be declared")
        if identity and all(value is None for value in identity.values()):
            raise self._refused(f"every identity argument ({', '.join(identity)}) is null")
        return identity

    def _argument(self, name: str) -> Json:
        if name in self.arguments:
            return self.arguments[name]
        if not self.declaration.is_optional(name):
            raise self._refused(f"the identity argument {name} is missing")
        return None

    def _undeclared_or_refused(self) -> dict[str, Json]:
        considered = without(self.arguments, self.declaration.fields, GENERATED)
        if self.declaration.scope is None and not any(
            value is not None for value in considered.values()
        ):
            raise self._refused("no argument names its target, and no scope is declared")
        return self.undeclared()

    def undeclared(self) -> dict[str, Json]:
        """The arguments that were passed, less generated ones and those equal to a default."""
        defaults = self._named(self._seen(self.declaration.defaults))
        return {
            name: value
            for name, value in without(self.arguments, self.declaration.fields, GENERATED).items()
            if name in self.passed
            and not (name in defaults and canonical(value) == canonical(defaults[name]))
        }

    def _refused(self, why: str) -> IdentityRefused:
        tool = self.declaration.tool
        return IdentityRefused(
            f"{tool}: {why}; declare `identity` (or `scope`) for {tool} in backstop.yaml, or "
            "pass the argument"
        )

    def identified(
        self,
        identity: dict[str, Json] | str,
        *,
        namespace: Namespace,
        run: str,
        step: str,
        occurrence: int | str | None = None,
    ) -> Identified:
        """The digests. An explicit key is a text where an identity is an object."""
        declared = self.declaration
        nth = self._occurrence(step) if occurrence is None else occurrence
        before = _before(namespace.agent, namespace.app, namespace.tenant, declared.tool)
        counted = "0" if nth is _FIRST else canonical(nth)
        within = _within(declared.scope or Scope.RUN, run, step)
        named = f"{before}{text_of(identity)},{within},{counted}]"
        compared = self.text
        if not self.is_as_passed:
            compared = canonical(without(self.arguments, declared.fields, GENERATED))
        return Identified(
            key=digest(named),
            fingerprint=digest(compared),
            identity=identity if isinstance(identity, dict) else {"$key": identity},
            arguments=self.arguments,
            occurrence=nth,
            override=self.override,
            passed=self.text,
        )

    def _occurrence(self, step: str) -> Json:
        name = self.declaration.occurrence
        if name is None:
            return _FIRST
        value = step if name == "step" else self.arguments.get(name)
        return 0 if value is None else value


_FIRST: Final = 0
"""The occurrence of a call that tells no repeats apart."""


@lru_cache(maxsize=1024)  # an agent has few tools, and very many calls
def _before(agent: str, app: str, tenant: str, tool: str) -> str:
    """What a key's text begins with, up to the identity (K1)."""
    return f"{canonical(['backstop.key', CANON_VERSION, [agent, app, tenant], tool])[:-1]},"


@lru_cache(maxsize=1024)  # a run makes many calls
def _within(scope: Scope, run: str, step: str) -> str:
    """Scope and scope value as a key's text has them (K1)."""
    where = run if scope is Scope.RUN else [run, step] if scope is Scope.STEP else ""
    return f'"{scope.value}",{canonical(where)}'


def _overrides(members: dict[str, Json], declaration: Declaration) -> dict[str, Json] | None:
    if not declaration.fields:
        return None
    given = picked(members, declaration.fields, OVERRIDE)
    return {name: value for name, value in given.items() if value not in (None, False, "")} or None
