"""Whether a line is true to itself: do its key and fingerprint belong to its arguments?

A seal proves that a file is as it was written, not that what was written is right. Keys decide
what the gate takes for the same effect, so a reader that trusts nothing works each one out
again, from the arguments and the declaration that the line names.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from backstop.core.canon import NotCanonical
from backstop.core.declaration import Declaration, Namespace
from backstop.core.erasure import is_erased
from backstop.core.events import CallBlocked, EffectClaimed, Event, Header, ToolRead
from backstop.core.identity import Identified, identify, identify_read
from backstop.core.intents import Intent
from backstop.core.strict import strict
from backstop.errors import IdentityError


def false_declaration(header: Header) -> str | None:
    """The first declaration of a header that is not the one its digest names, in words; or None."""
    for named, declaration in header.declarations.items():
        if declaration.digest != named:
            return (
                f"declaration {named!r} of {declaration.tool!r} has the digest "
                f"{declaration.digest!r}: it was changed"
            )
    for tool, named in header.tools.items():
        declared = header.declarations.get(named)
        if declared is None:
            return f"tool {tool!r} names a declaration that is not there"
        if tool != declared.tool and tool not in declared.aliases:
            return f"tool {tool!r} names the declaration of {declared.tool!r}"
    return None


class Keys:
    """Works out again what a ledger's rows say of their calls."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._owner = Namespace(agent=header.agent, app=header.app, tenant=header.tenant)

    def false(self, event: Event) -> str | None:
        """What is not true of the call that `event` tells of, in words; None if all is true."""
        said: tuple[str, str | None]
        match event:
            case EffectClaimed():
                said = event.key, event.fingerprint
            case CallBlocked():
                said = event.key, event.fingerprint or None
            case ToolRead():
                said = event.key, None
            case _:
                return None
        if is_erased(event.args):
            return None  # nothing is left to make a key of; the key stays what it was
        return _false(
            event.args,
            said,
            declaration=self._declaration(event),
            owner=self._owner,
            run=event.run,
            step=event.step,
        )

    def _declaration(self, event: EffectClaimed | CallBlocked | ToolRead) -> Declaration:
        named = event.decl or self._header.tools.get(event.tool, "")
        return self._header.declarations.get(named) or Declaration(
            tool=event.tool, effect=not isinstance(event, ToolRead)
        )


def false_intent(
    intent: Intent, declarations: Mapping[str, Declaration], owner: Namespace
) -> str | None:
    """What is not true of an intent, in words; None if all is true, or its key is yet to be made.

    `declarations` are those that the keys of its file were made under, by tool.
    """
    if not intent.key:
        return None
    declared = declarations.get(intent.tool) or next(
        (one for one in declarations.values() if intent.tool in one.aliases), None
    )
    return _false(
        intent.args,
        (intent.key, intent.fingerprint),
        declaration=declared or Declaration(tool=intent.tool),
        owner=owner,
        run=intent.run,
        step=intent.step,
    )


def _false(
    raw: msgspec.Raw,
    said: tuple[str, str | None],
    *,
    declaration: Declaration,
    owner: Namespace,
    run: str,
    step: str,
) -> str | None:
    key, fingerprint = said
    try:
        found = _identified(raw, declaration, owner, run=run, step=step)
    except (IdentityError, NotCanonical) as refused:
        return f"it has key {key[:12]!r}, but none can be made of its arguments: {refused}"
    if key != found.key:
        return f"its key {key[:12]!r} is not that of its arguments, {found.key[:12]!r}"
    if fingerprint is not None and fingerprint != found.fingerprint:
        return (
            f"its fingerprint {fingerprint[:12]!r} is not that of its arguments, "
            f"{found.fingerprint[:12]!r}"
        )
    return None


def _identified(
    raw: msgspec.Raw, declaration: Declaration, owner: Namespace, *, run: str, step: str
) -> Identified:
    arguments = strict(bytes(raw))
    if not isinstance(arguments, dict):
        raise IdentityError(f"the arguments of {declaration.tool} are no JSON object")
    how = identify if declaration.effect else identify_read
    return how(arguments, declaration, namespace=owner, run=run, step=step)
