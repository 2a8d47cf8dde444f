"""The stores' suite runs once for each store that has a bench."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract import benches
from tests.contract.bench import Bench
from tests.contract.suites import benches as benches_of


@pytest.fixture(params=benches_of(benches))
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with request.param(request) as made:
        yield made
