"""Of a store that keeps its past nothing can be taken out, and it says so."""

from __future__ import annotations

import pytest

from backstop.adapters.memory import MemoryStore
from backstop.clock import SystemClock
from backstop.errors import ConfigError
from backstop.wiring.erasing import erase_store


def test_a_store_that_keeps_its_past_says_so() -> None:
    store = MemoryStore(clock=SystemClock())
    with pytest.raises(ConfigError, match="pull the ledger, erase in the file") as caught:
        erase_store(store, "ana", url="memory:", key=None, fields=())
    assert caught.value.slug == "erase-store"
