"""The archives' suite runs once for each archive that has a bench."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.archives import benches
from tests.contract.archives.bench import ArchiveBench
from tests.contract.suites import benches as benches_of


@pytest.fixture(params=benches_of(benches))
def place(request: pytest.FixtureRequest) -> Iterator[ArchiveBench]:
    with request.param(request) as made:
        yield made
