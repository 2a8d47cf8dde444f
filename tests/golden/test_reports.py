"""What verdicts look like to a person, as reviewed; `make golden` rewrites the files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from backstop.reports.terminal import render
from tests.verdicts import NAMED


@pytest.mark.parametrize("name", NAMED)
def test_the_report_is_as_reviewed(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"reports/{name}.txt", render(NAMED[name]))
