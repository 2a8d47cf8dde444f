"""A change of the lock file alone, in containers: each version is built from its own (A14)."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop.adapters.docker.building.images import ImageBuilder
from backstop.adapters.docker.building.recipe import Recipe
from tests.e2e.building import AT_WORK, FOR_EVER, Building, checkout

pytestmark = pytest.mark.docker

OLD = "__version__ = '2.11.0'\n"
ASK = "from google.adk.version import __version__; print(__version__)"


def test_a14_base_and_candidate_have_each_the_framework_that_its_own_file_names(
    building: Building, tmp_path: Path
) -> None:
    """A14: the code is the same to the byte, and yet two images are made of it."""
    building.index.offer("google_adk", "2.11.0", {"google/adk/version.py": OLD})
    base = checkout(tmp_path / "base", "google-adk==2.11.0\n")
    head = checkout(tmp_path / "head", "google-adk==2.13.0\n")
    asked = Recipe(base=building.base, index=building.index.address, wall_s=240.0, compiled=False)
    builder = ImageBuilder(
        building.client, asked, checkouts=[base, head], labels=AT_WORK, newest=FOR_EVER
    )
    built = [builder.build(root / "agents" / "vendor") for root in (base, head)]
    assert [building.run(one, ASK) for one in built] == ["2.11.0\n", "2.13.0\n"]
