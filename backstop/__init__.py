"""Backstop: a deploy gate for long-running Google ADK agents."""

from __future__ import annotations

import importlib as _importlib
import typing as _typing

if (
    _typing.TYPE_CHECKING
):  # loaded when first used: `import backstop` costs nothing in an agent's process
    from collections.abc import Mapping

    from backstop.core.canon import canonical
    from backstop.core.divergence import compare
    from backstop.core.identity import Declaration

__version__ = "0.1.0"

__all__ = ["canonical", "compare", "effect_key"]

_HOMES: _typing.Final = {
    "canonical": "backstop.core.canon",
    "compare": "backstop.core.divergence",
}


def effect_key(
    tool: str,
    args: Mapping[str, object],
    *,
    declaration: Declaration | None = None,
    agent: str = "",
    app: str = "",
    tenant: str = "",
    run: str = "",
    step: str = "",
) -> str:
    """The idempotency key of a call, 64 hex digits; undeclared, all arguments name the target.

    `run` and `step` matter as far as the declaration's scope says. Raises `IdentityError`
    for a call that would have to be given a made-up key (rule K1).
    """
    from backstop.core.identity import Declaration, Namespace, identify

    return identify(
        args,
        declaration or Declaration(tool=tool),
        namespace=Namespace(agent=agent, app=app, tenant=tenant),
        run=run,
        step=step,
    ).key


def __getattr__(name: str) -> object:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_importlib.import_module(home), name)


def __dir__() -> list[str]:
    return [*__all__]
