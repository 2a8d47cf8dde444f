"""Backstop: a deploy gate for long-running Google ADK agents."""

from __future__ import annotations

import importlib as _importlib
import typing as _typing

# Loaded when first used: `import backstop` costs next to nothing in an agent's process.
if _typing.TYPE_CHECKING:
    import os as _os
    from collections.abc import Iterable, Mapping

    from backstop.core.canon import canonical
    from backstop.core.declaration import Declaration, Namespace
    from backstop.core.divergence import compare
    from backstop.core.intentsfile import Intents
    from backstop.core.keying import Rules
    from backstop.core.ledgerfile import Ledger
    from backstop.core.verdict import Verdict
    from backstop.errors import BackstopError
    from backstop.guard.claims.capability import DidNotHappen, Happened, Unknown, keyed, probe
    from backstop.guard.effect import effect
    from backstop.guard.results import Conflict, Failed, Held, InDoubt, Refused, Withheld
    from backstop.mesh.declare import depends_on, evidence, step
    from backstop.wiring.plugin import Plugin

__version__ = "0.1.0"

__all__ = [
    "BackstopError",
    "Conflict",
    "Declaration",
    "DidNotHappen",
    "Failed",
    "Happened",
    "Held",
    "InDoubt",
    "Namespace",
    "Plugin",
    "Refused",
    "Rules",
    "Unknown",
    "Withheld",
    "canonical",
    "compare",
    "depends_on",
    "effect",
    "effect_key",
    "evidence",
    "keyed",
    "probe",
    "read_intents",
    "read_ledger",
    "run_gate",
    "step",
]

_HOMES: _typing.Final = {
    "BackstopError": "backstop.errors",
    "Conflict": "backstop.guard.results",
    "Declaration": "backstop.core.declaration",
    "DidNotHappen": "backstop.guard.claims.capability",
    "Failed": "backstop.guard.results",
    "Happened": "backstop.guard.claims.capability",
    "Held": "backstop.guard.results",
    "InDoubt": "backstop.guard.results",
    "Namespace": "backstop.core.declaration",
    "Plugin": "backstop.wiring.plugin",
    "Refused": "backstop.guard.results",
    "Rules": "backstop.core.keying",
    "Unknown": "backstop.guard.claims.capability",
    "Withheld": "backstop.guard.results",
    "canonical": "backstop.core.canon",
    "compare": "backstop.core.divergence",
    "depends_on": "backstop.mesh.declare",
    "effect": "backstop.guard.effect",
    "evidence": "backstop.mesh.declare",
    "keyed": "backstop.guard.claims.capability",
    "probe": "backstop.guard.claims.capability",
    "step": "backstop.mesh.declare",
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
    for a call that would have to be given a made-up key (rule K1), and `NoRedactionKey` where
    a value is declared `redact` and the environment holds no key.
    """
    from backstop.core.declaration import Declaration, Namespace
    from backstop.core.identity import identify
    from backstop.core.redaction import Redaction
    from backstop.wiring.redacting import redaction_key

    declared = declaration or Declaration(tool=tool)
    return identify(
        Redaction(key=redaction_key()).arguments(args, declared) if declared.fields else args,
        declared,
        namespace=Namespace(agent=agent, app=app, tenant=tenant),
        run=run,
        step=step,
    ).key


def read_ledger(path: str | _os.PathLike[str]) -> Ledger:
    """A sealed ledger file, checked strictly; its `history` is what `compare` takes.

    Raises `BackstopError` for one that is missing, damaged or not whole.
    """
    from pathlib import Path

    from backstop.adapters.files import read_bytes
    from backstop.core import ledgerfile

    data = read_bytes(Path(path), kind="ledger")
    ledgerfile.verify((data,), name=str(path))
    return ledgerfile.read(data, name=str(path))


def read_intents(path: str | _os.PathLike[str]) -> Intents:
    """A sealed intents file, as ``backstop replay`` writes it; `compare` takes its `intents`.

    Raises `BackstopError` for one that is missing, damaged or not whole.
    """
    from pathlib import Path

    from backstop.adapters.files import read_bytes
    from backstop.core import intentsfile

    return intentsfile.read(read_bytes(Path(path), kind="intents"), name=str(path))


def run_gate(
    config: str | _os.PathLike[str] = "backstop.yaml",
    *,
    agent: str | None = None,
    candidate: str | _os.PathLike[str] | None = None,
    base: str | _os.PathLike[str] | None = None,
    sandbox: str | None = None,
    fail_on: Iterable[str] | None = None,
    allow_empty: bool = False,
) -> Verdict:
    """What ``backstop gate`` decides: the verdict, whose `exit_code` is the command's.

    `fail_on` are kinds of divergence (``duplicate``, ``missing``, ...). Raises
    `BackstopError` where the command leaves with exit code 2, `ValueError` for an unknown
    kind.
    """
    from pathlib import Path

    from backstop.core.divergence import Kind
    from backstop.gate.request import GateRequest, ReplayRequest
    from backstop.wiring.gating import gate

    request = ReplayRequest(
        config=Path(config),
        agent=agent,
        candidate=None if candidate is None else Path(candidate),
        base=None if base is None else Path(base),
        sandbox=sandbox,
    )
    kinds = None if fail_on is None else frozenset(Kind(kind.upper()) for kind in fail_on)
    return gate(GateRequest(replay=request, fail_on=kinds, allow_empty=allow_empty)).verdict


def __getattr__(name: str) -> object:
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_importlib.import_module(home), name)


def __dir__() -> list[str]:
    return [*__all__]
