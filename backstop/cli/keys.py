"""``backstop canon key``: what a call's canonical form, key and fingerprint are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from backstop.cli.diffing import choose
from backstop.core.canon import CANON_VERSION, canonical, parse
from backstop.core.declaration import Declaration, Namespace, Scope
from backstop.core.identity import identify
from backstop.core.redaction import Redaction
from backstop.errors import UsageError
from backstop.reports.escape import in_json, plain
from backstop.wiring.redacting import redaction_key


def key(
    tool: str, args: str, *, config: Path | None, agent: str | None, run: str, step: str
) -> str:
    """What a call's key is made of, a line each.

    Raises `NotCanonical` for arguments that have no canonical form, `IdentityError` for a
    call that has no key, `NoRedactionKey` for one with values that are kept as tokens only.
    """
    if not tool.strip():
        raise UsageError("--tool: a name is needed; it is part of the key")
    arguments = parse(args)
    if not isinstance(arguments, dict):
        raise UsageError("--args: a JSON object is needed, like '{\"order\": 7}'")
    _, chosen = choose(config, agent)
    declared = None if chosen is None else chosen.declarations.get(tool)
    declaration = declared or Declaration(tool=tool)
    namespace = Namespace(agent="") if chosen is None else chosen.namespace
    hidden = Redaction(key=redaction_key()).arguments(arguments, declaration)
    found = identify(hidden, declaration, namespace=namespace, run=run, step=step)
    scope = Scope.RUN if declaration.scope is None else declaration.scope
    role = "not declared" if declared is None else "effect" if declared.effect else "read"
    return "\n".join(
        (
            f"tool         {plain(tool)} ({role})",
            f"canonical    {in_json(canonical(found.arguments))}",
            f"identity     {in_json(canonical(found.identity))}",
            f"key          {found.key}",
            f"fingerprint  {found.fingerprint}",
            f"scope        {scope.value}; canonical form {CANON_VERSION}",
            *_within(scope, run=run, step=step),
        )
    )


def _within(scope: Scope, *, run: str, step: str) -> Iterator[str]:
    """The run and the step that are part of a key of this scope."""
    if scope is not Scope.AGENT:
        yield f"run          {plain(run) or '(none; name it with --run)'}"
    if scope is Scope.STEP:
        yield f"step         {plain(step) or '(none; name it with --step)'}"
