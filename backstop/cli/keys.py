"""``backstop canon key``: what a call's canonical form, key and fingerprint are."""

from __future__ import annotations

from pathlib import Path

from backstop.cli.diffing import choose
from backstop.core.canon import CANON_VERSION, canonical, parse
from backstop.core.identity import Declaration, Namespace, identify
from backstop.errors import UsageError
from backstop.reports.escape import in_json


def key(
    tool: str, args: str, *, config: Path | None, agent: str | None, run: str, step: str
) -> str:
    """Lines ``canonical``, ``identity``, ``key``, ``fingerprint`` and the scope of a call.

    Raises `NotCanonical` for arguments that have no canonical form, `IdentityError` for a
    call that has no key.
    """
    arguments = parse(args)
    if not isinstance(arguments, dict):
        raise UsageError("--args: a JSON object is needed, like '{\"order\": 7}'")
    _, chosen = choose(config, agent)
    declaration = Declaration(tool=tool)
    namespace = Namespace(agent="")
    if chosen is not None:
        declaration = chosen.declarations.get(tool, declaration)
        namespace = chosen.namespace
    found = identify(arguments, declaration, namespace=namespace, run=run, step=step)
    scope = "run" if declaration.scope is None else declaration.scope.value
    return "\n".join(
        (
            f"canonical    {in_json(canonical(found.arguments))}",
            f"identity     {in_json(canonical(found.identity))}",
            f"key          {found.key}",
            f"fingerprint  {found.fingerprint}",
            f"scope        {scope}; canonical form {CANON_VERSION}",
        )
    )
