"""Every fault that is planted in the core is found by a law: so the laws can be trusted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.property.mesh.laws import LAWS, Law
from tests.property.mesh.mutants import FAULTS
from tests.property.mesh.planting import Core, planted


def breaks(law: Law, core: Core) -> bool:
    """Does the law find something in 300 draws?"""

    @settings(max_examples=300, phases=(Phase.generate,), derandomize=True, database=None)
    @given(st.tuples(*law.drawn))
    def holds(drawn: tuple[Any, ...]) -> None:
        law.check(core, *drawn)

    try:
        holds()
    except Exception:  # noqa: BLE001 - a fault may show as any error
        return True
    return False


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_law_finds_the_fault(fault: str) -> None:
    law, *text = FAULTS[fault]
    assert breaks(LAWS[law], planted(*text))
