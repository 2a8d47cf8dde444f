"""A whole ledger for the tests of the core."""

from __future__ import annotations

import pytest

from tests.dsl import sealed
from tests.unit.core.pages import TWO_RUNS


@pytest.fixture
def good() -> bytes:
    """Two runs, sealed."""
    return sealed(TWO_RUNS)
