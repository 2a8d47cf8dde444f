"""A suite runs once for each adapter that has a module in its folder of benches.

Such a module holds `MARKS`, pytest marks that its tests bear, and `bench`, a context manager
that is handed the fixture request and yields what the suite needs to know of the adapter.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

import pytest


def benches(package: ModuleType) -> list[object]:
    """Parameters for a fixture: the bench of each module in `package`, by its name."""
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    return [_param(package, name) for name in names]


def _param(package: ModuleType, name: str) -> object:
    module = import_module(f"{package.__name__}.{name}")
    return pytest.param(module.bench, marks=module.MARKS, id=name)
