"""The laws of trust hold for the core that is shipped."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.mesh.laws import LAWS
from tests.property.mesh.planting import shipped


@pytest.mark.parametrize("law", list(LAWS))
def test_the_law_holds(law: str) -> None:
    core = shipped()

    @given(st.tuples(*LAWS[law].drawn))
    def holds(drawn: tuple[Any, ...]) -> None:
        LAWS[law].check(core, *drawn)

    holds()
