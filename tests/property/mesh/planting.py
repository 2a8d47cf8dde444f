"""The core of the mesh as it is shipped, or loaded anew with a fault planted in its text."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Final, TypeAlias

from backstop.core import recovery, trustgraph, trustverdicts

Core: TypeAlias = SimpleNamespace
"""Has `TrustGraph`, `Verdicts`, `plan` and `recover`."""

MODULES: Final = ("trustgraph", "trust", "trustverdicts", "recovery")
"""In the order in which they import one another."""

_SOURCE: Final = Path(trustgraph.__file__).parent
_numbers: Final = count()


def shipped() -> Core:
    """The core that is shipped."""
    return _core(trustgraph, trustverdicts, recovery)


def planted(module: str, healthy: str, fault: str) -> Core:
    """The core with `fault` in the place of `healthy`, which must stand in `module` once."""
    package = f"planted_{next(_numbers)}"
    loaded: dict[str, ModuleType] = {}
    for name in MODULES:
        text = (_SOURCE / f"{name}.py").read_text(encoding="utf-8")
        if name == module:
            assert text.count(healthy) == 1, f"{module} has {healthy!r} {text.count(healthy)} times"
            text = text.replace(healthy, fault)
        for known in MODULES:
            text = text.replace(f"from backstop.core.{known} ", f"from {package}_{known} ")
        new = ModuleType(f"{package}_{name}")
        sys.modules[new.__name__] = new
        exec(compile(text, f"<{name} with a fault>", "exec"), new.__dict__)  # noqa: S102 - our own text
        loaded[name] = new
    return _core(loaded["trustgraph"], loaded["trustverdicts"], loaded["recovery"])


def _core(graph: ModuleType, verdicts: ModuleType, recovering: ModuleType) -> Core:
    return Core(
        TrustGraph=graph.TrustGraph,
        Verdicts=verdicts.Verdicts,
        plan=recovering.plan,
        recover=recovering.recover,
    )
