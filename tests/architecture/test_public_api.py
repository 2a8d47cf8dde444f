"""The public API is a list."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import backstop


def test_the_public_api_is_exactly_all() -> None:
    offered = {
        name
        for name in dir(backstop)
        if not name.startswith("_") and not isinstance(getattr(backstop, name), ModuleType)
    }
    assert offered - {"annotations"} == {name for name in backstop.__all__ if name[0] != "_"}


def test_every_public_name_can_be_had() -> None:
    missing = object()
    assert [name for name in backstop.__all__ if getattr(backstop, name, missing) is missing] == []


def test_a_file_that_cannot_be_read_is_the_packages_own_error(tmp_path: Path) -> None:
    for read in (backstop.read_ledger, backstop.read_intents):
        with pytest.raises(backstop.BackstopError, match="nowhere"):
            read(tmp_path / "nowhere.jsonl")
