"""The suite runs once for each archive that has a module in `benches`.

Such a module holds `MARKS`, pytest marks that its tests bear, and `bench`, a context manager
that is handed the fixture request and yields an `ArchiveBench`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from tests.contract.archives.bench import ArchiveBench

ARCHIVES: Final = sorted(path.stem for path in (Path(__file__).parent / "benches").glob("*.py"))


def _param(name: str) -> object:
    module = import_module(f"tests.contract.archives.benches.{name}")
    return pytest.param(module.bench, marks=module.MARKS, id=name)


@pytest.fixture(params=[_param(name) for name in ARCHIVES])
def place(request: pytest.FixtureRequest) -> Iterator[ArchiveBench]:
    with request.param(request) as made:
        yield made
