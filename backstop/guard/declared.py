"""What is known of an agent's tools: what the configuration says, completed by what its code says.

``backstop.yaml`` wins where the code is silent, and the code where the configuration is. Where
both speak and differ nobody can know what is meant: the tool's effects are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from backstop.adk.schema import schema_of_function
from backstop.core.declaration import Declaration, Scope, completed
from backstop.errors import UsageError
from backstop.guard.claims.capability import Keyed, Probe, seconds
from backstop.guard.claims.safety import LEASE_S, NO_SAFETY, Safety
from backstop.guard.effect import Declared, declarations, declared_by


def functions_of(folder: Path) -> Iterator[Declared]:
    """What the decorated functions say that are at home below `folder`, or have a name there."""
    home = folder.resolve()
    found = {
        declared.home: declared
        for declared in declarations()
        if _lies_in(declared.function.__code__.co_filename, home)
    }
    for module in list(sys.modules.values()):
        if not _lies_in(getattr(module, "__file__", None), home):
            continue
        named = map(declared_by, list(vars(module).values()))
        found |= {declared.home: declared for declared in named if declared is not None}
    yield from found.values()


def _lies_in(file: str | None, folder: Path) -> bool:
    return bool(file) and Path(file or "").resolve().is_relative_to(folder)


@dataclass(kw_only=True, eq=False)
class Tools:
    """The tools of one agent: `configured` and `vouched` by the configuration, `found` in code.

    `shared` are names that several tools bear whose code differs.
    """

    configured: Mapping[str, Declaration] = field(default_factory=dict)
    vouched: Mapping[str, Safety] = field(default_factory=dict)
    found: Iterable[Declared] = ()
    shared: frozenset[str] = frozenset()
    _known: dict[str, Safety] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        # One list, whoever asks: `found` may be an iterator.
        self.found = list(self.found)

    def add(self, said: Declared) -> Declaration:
        """Take in a function that was found later; what names its effects from now on.

        Doing it again changes nothing: threads may find it at once, and a store may be down.
        """
        self.found = [*(one for one in self.found if one.home != said.home), said]
        self._known.pop(said.tool, None)
        return _declaration(said, self._configured(said))

    def declarations(self) -> dict[str, Declaration]:
        """Everything that names effects, by tool: for the journal and the ledger's header."""
        return {
            **self.configured,
            **{said.tool: _declaration(said, self._configured(said)) for said in self.found},
        }

    def safety(self) -> Mapping[str, Safety]:
        """How effects may be tried again, by tool; worked out when a tool is first asked for."""
        return _Safeties(self)

    def safety_of(self, tool: str) -> Safety:
        """How a tool's effect may be tried again, `broken` where that cannot be relied on."""
        if tool not in self._known:
            self._known[tool] = self._safety_of(tool)
        return self._known[tool]

    def _safety_of(self, tool: str) -> Safety:
        if tool in self.shared:
            return Safety(
                broken=f"several tools are called {tool}, and do different things: one would be "
                "answered with what another did; give one another name"
            )
        vouched = self.vouched.get(tool, NO_SAFETY)
        said = [one for one in self.found if one.tool == tool]
        if not said or vouched.broken:
            return vouched
        if len(said) > 1:
            homes = " and ".join(sorted(one.home for one in said))
            return Safety(
                broken=f"several functions are called {tool}: {homes}; their effects would share "
                'keys: give one another name, @effect(name="...")'
            )
        (one,) = said
        return _safety(one, vouched, _contradiction(one, self._configured(one)))

    def _configured(self, said: Declared) -> Declaration:
        return self.configured.get(said.tool) or Declaration(tool=said.tool)


class _Safeties(Mapping[str, Safety]):
    """`Safety` by tool: names in a configuration are imported for the tools that are called."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def __getitem__(self, tool: str) -> Safety:
        tools = self._tools
        known = tool in tools.vouched or tool in tools.shared
        if known or any(one.tool == tool for one in tools.found):
            return tools.safety_of(tool)
        raise KeyError(tool)

    def __iter__(self) -> Iterator[str]:
        tools = self._tools
        found = (one.tool for one in tools.found)
        return iter(dict.fromkeys([*tools.vouched, *tools.shared, *found]))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _declaration(said: Declared, configured: Declaration) -> Declaration:
    """The configured declaration, with what the code says where that is silent."""
    param = said.capability.param if isinstance(said.capability, Keyed) else None
    code = Declaration(
        tool=said.tool,
        identity=said.identity,
        scope=None if said.scope is None else Scope(said.scope),
        key=said.key,
        # What we write there ourselves says nothing about what is asked for.
        fields={} if param is None else {param: ("volatile",)},
    )
    known = completed(configured, code)
    if known.schema:
        return known
    return msgspec.structs.replace(known, schema=schema_of_function(said.function))


def _contradiction(said: Declared, configured: Declaration) -> str:
    """What code and configuration say differently of what names the effect; empty if nothing."""
    scope = None if said.scope is None else Scope(said.scope)
    words = {
        "identity": (said.identity, configured.identity),
        "scope": (scope, configured.scope),
        "key": (said.key or None, configured.key or None),
    }
    differing = [
        name
        for name, (ours, theirs) in words.items()
        if ours is not None and theirs is not None and ours != theirs
    ]
    return _contradicting(said.tool, differing)


def _contradicting(tool: str, names: Iterable[str]) -> str:
    differing = ", ".join(names)
    if not differing:
        return ""
    return (
        f"the code and backstop.yaml say different things about {tool}: {differing}; say it in "
        "one place"
    )


def _safety(said: Declared, vouched: Safety, broken: str) -> Safety:
    capability = said.capability
    if capability is not None and not isinstance(capability, Keyed | Probe):
        broken = broken or f"the capability of {said.tool} is neither keyed(...) nor probe(...)"
        capability = None
    lease_s = LEASE_S
    try:
        lease_s = LEASE_S if said.lease is None else seconds(said.lease)
    except UsageError as error:
        broken = broken or f"the lease of {said.tool}: {error}"
    words = {
        "capability": (capability, vouched.capability, None),
        "no_effect_on": (said.no_effect_on, vouched.no_effect_on, ()),
        "lease": (lease_s, vouched.lease_s, LEASE_S),
    }
    differing = [
        name
        for name, (ours, theirs, unsaid) in words.items()
        if unsaid not in {ours, theirs} and ours != theirs
    ]
    return Safety(
        capability=vouched.capability or capability,
        no_effect_on=vouched.no_effect_on or said.no_effect_on,
        lease_s=lease_s if vouched.lease_s == LEASE_S else vouched.lease_s,
        broken=broken or _contradicting(said.tool, differing),
    )
